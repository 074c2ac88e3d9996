"""What the supervisor runs: it forks workers, renews their leases, and imports none of your code.

May import `rqueue_workers.worker` only for what a fork calls.
"""
