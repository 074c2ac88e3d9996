"""What a pool is started with: `run_pool`, and `load_pool_file` for its options."""

from __future__ import annotations

from rqueue_workers.pool_file import load_pool_file
from rqueue_workers.spec import PoolSpec

__all__ = ["load_pool_file", "run_pool"]


def run_pool(spec: PoolSpec) -> int:
    """Run a pool in this process until a signal ends it; returns its exit code (`exits.Exit`).

    Call it from the main thread: it takes over the signals. It logs to the logger `rqueue`, to
    stderr unless logging is configured.
    """
    from rqueue_workers.pool.supervisor import Supervisor

    return Supervisor(spec).run()
