"""What a pool is doing right now, as lines of its log (SIGUSR1)."""

from __future__ import annotations

from collections.abc import Sequence

from rqueue.logs import logger
from rqueue.text.numbers import many
from rqueue_workers.pool.processes import WorkerProcess, WorkerProcesses
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import READY, STARTING

log = logger("rqueue.pool")


def report(processes: WorkerProcesses, spec: WorkerSpec, now: float, gone: Sequence[str]) -> None:
    """Log one line for each worker, and one for each job that it runs. now: `time.monotonic()`.
    gone: queues whose Redis cannot be used."""
    away = f" for {', '.join(gone)}" if set(gone) < set(spec.queues) else ""
    log.info(
        "pool %s: %s%s",
        processes.name,
        workers(len(processes)),
        f", Redis is gone{away}" if gone else "",
    )
    for process in processes:
        running = process.page.running()
        log.info(
            "worker %s (process %d) %s for %.0f s: %s done, %d running",
            process.base,
            process.pid,
            _doing(process),
            now - process.forked_at,
            many(process.page.done, "job"),
            len(running),
        )
        for job in running:
            limit = f", at most {job.deadline - job.started:.3g} s" if job.deadline else ""
            queue = spec.queues[job.queue]
            log.info("  job %s of queue %s for %.3g s%s", job.id, queue, now - job.started, limit)


def workers(count: int) -> str:
    """So many workers, in words."""
    return many(count, "worker")


def _doing(process: WorkerProcess) -> str:
    if process.stopped:
        return "is stopped"
    if process.asked or process.page.phase > READY:
        return "leaves"
    return "starts" if process.page.phase == STARTING else "works"
