"""What the log says of workers that die, are killed, or cannot start."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rqueue.logs import logger
from rqueue_workers.pool.processes import WorkerProcess
from rqueue_workers.pool.verdict import Verdict
from rqueue_workers.status_page import NOTE

log = logger("rqueue.pool")


class CrashLog:
    """Names jobs, queues and causes. queues: their names, in the order of the status page."""

    def __init__(self, queues: Sequence[str]) -> None:
        self._queues = queues
        self._said = ""

    def died(self, verdict: Verdict, now: float) -> None:
        """A worker crashed: why, and what it ran."""
        process = verdict.process
        jobs = ", ".join(
            f"{job.id} of queue {self._queues[job.queue]} (for {now - job.started:.3g} s)"
            for job in verdict.running
        )
        log.error(
            "worker %s (process %d) %s; %s%s",
            process.base,
            process.pid,
            verdict.exit_cause,
            f"it ran {jobs}" if jobs else "it ran no job",
            _own_fault(verdict) if verdict.ours else "",
        )

    def killing(self, process: WorkerProcess) -> None:
        """A worker is about to be killed, because of what it runs."""
        for job in process.condemned:
            log.warning(
                "job %s of queue %s was cancelled, and its process with it: killing worker %s",
                job.id,
                self._queues[job.queue],
                process.base,
            )
        for job in process.overdue:
            log.warning(
                "job %s of queue %s passed its hard limit of %.3g s: killing worker %s",
                job.id,
                self._queues[job.queue],
                job.deadline - job.started,
                process.base,
            )

    def say(self, level: int, said: str) -> None:
        """Log what a worker says of itself, once and not for each of them; notes as information."""
        if said and said != self._said:
            self._said = said
            for line in said.splitlines():
                log.log(logging.INFO if line.startswith(NOTE) else level, "%s", line)


def _own_fault(verdict: Verdict) -> str:
    if not verdict.charged:
        return "; a fault of rqueue's own, no job is charged"
    ids = ", ".join(job.id for job in verdict.charged)
    return f"; a fault of rqueue's own, and not the first one while it ran {ids}: charged"
