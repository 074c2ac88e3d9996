"""What an application declares: tasks, their options, retries, and what a running job can ask.

Knows no Redis. May import `rqueue.model`, `rqueue.settings` and what is below them.
"""
