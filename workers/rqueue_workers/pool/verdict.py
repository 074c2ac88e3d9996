"""What the death of a worker means: who is charged, and how its place is filled again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rqueue_workers.exit_codes import Exit
from rqueue_workers.pool.exit_cause import (
    ExitCause,
    OomKills,
    crash_cause,
    limit_cause,
    quiet_cause,
)
from rqueue_workers.pool.processes import WorkerProcess
from rqueue_workers.status_page import Running

REMEMBERED = 5000
"""Jobs of which it is remembered that they ran when rqueue failed."""


class Verdict(NamedTuple):
    """How a worker died.

    ordered: it left when it was asked to, or when it was to be recycled. crashed: it died by
    itself. no_start: the application or Redis kept it from starting. ours: by a fault of rqueue's
    own, for which no job is charged but those that ran at such a fault before (`OwnFaults`). oom:
    the kernel ran out of memory. charged: the jobs that cost the process, in the order in which
    they began.
    """

    process: WorkerProcess
    exit_cause: ExitCause
    ordered: bool
    crashed: bool
    no_start: bool
    ours: bool
    oom: bool
    running: list[Running]
    charged: list[Running]

    @property
    def by_job(self) -> bool:
        """Whether it died by what it ran."""
        return self.crashed and bool(self.charged)

    @property
    def unfinished(self) -> bool:
        """Whether jobs that ran are to run again though no limit of theirs was the reason."""
        process = self.process
        overdue = {job.id for job in (*process.overdue, *process.condemned)}
        return self.exit_cause.code == Exit.UNFINISHED or any(
            j.id not in overdue for j in self.running
        )

    def cause(self, jobs: list[Running], at: int) -> bytes:
        """The cause JSON of these of the charged jobs. at: ms, Redis's clock."""
        worker = self.process.base
        if not jobs:
            return quiet_cause(worker, at)
        if self.crashed:
            return crash_cause(self.exit_cause, worker, at, self.oom)
        return limit_cause(jobs[0].deadline - jobs[0].started, worker, at)


class OwnFaults:
    """Remembers which jobs ran when a worker of this pool died by a fault of rqueue's own. One is
    an accident to them; a job of which that happens again may well cause it, as one does that
    raises exceptions in threads that are not its own."""

    def __init__(self) -> None:
        self._ran: dict[tuple[int, str], None] = {}

    def again(self, running: Iterable[Running]) -> list[Running]:
        """Those of the jobs that ran at this fault which ran at an earlier one too."""
        again = []
        for job in running:
            key = (job.queue, job.id)
            if key in self._ran:
                again.append(job)
            self._ran[key] = None
        while len(self._ran) > REMEMBERED:
            del self._ran[next(iter(self._ran))]
        return again


def judge(
    process: WorkerProcess, exit_cause: ExitCause, oom_kills: OomKills, own_faults: OwnFaults
) -> Verdict:
    """Say what a death means. Reads the worker process's page."""
    running = process.page.running()
    ordered = (process.asked or not process.stays) and exit_cause.code in (Exit.OK, Exit.UNFINISHED)
    # asked to leave before it could listen: the signal itself ended it
    unheard = process.asked and not process.ready and exit_cause.signal == "SIGTERM"
    no_start = not process.ready and exit_cause.code in (Exit.APP, Exit.REDIS) and not running
    crashed = not (ordered or process.killed or unheard or no_start)
    ours = crashed and process.page.our_fault
    if crashed:
        charged = own_faults.again(running) if ours else running
    else:
        overdue = {(job.slot, job.id) for job in process.overdue}
        charged = [job for job in running if (job.slot, job.id) in overdue]
    return Verdict(
        process=process,
        exit_cause=exit_cause,
        ordered=ordered,
        crashed=crashed,
        no_start=no_start,
        ours=ours,
        oom=crashed and oom_kills.happened(),
        running=running,
        charged=sorted(charged, key=lambda job: job.started),
    )
