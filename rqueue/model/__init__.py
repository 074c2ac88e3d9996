"""What a queue is made of: names, ids, jobs, envelopes, signatures, batches of history.

Values alone: no Redis, no sockets. May import `rqueue.text`, `rqueue.errors`, `rqueue.logs`.
"""
