"""What users call: queues, consumers, handles, background puts, and the default queue.

May import `rqueue.transport` and what is below it.
"""
