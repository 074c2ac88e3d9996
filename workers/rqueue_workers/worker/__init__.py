"""What each worker process runs: it imports your tasks, pulls jobs, runs and settles them.

Never imports `rqueue_workers.pool`.
"""
