"""A rolling restart: one worker after another is replaced, and only by one that works."""

from __future__ import annotations

from collections.abc import Callable

from rqueue.logs import logger
from rqueue_workers.pool.exit_cause import ExitCause
from rqueue_workers.pool.processes import WorkerProcess, WorkerProcesses

log = logger("rqueue.pool")

ENDED_BY_SIGNALS = 3
"""New workers in a row that a signal may end before they are ready: an operator's, the kernel's for
want of memory. An application that ends its process so is as broken as one that cannot be imported.
"""


class RollingRestart:
    """One rolling restart. `step` is called whenever something may have changed.

    start: forks a worker into a slot. retire: tells a worker to drain.
    """

    def __init__(
        self,
        processes: WorkerProcesses,
        start: Callable[[int], WorkerProcess],
        retire: Callable[[WorkerProcess], None],
    ) -> None:
        self._processes = processes
        self._start = start
        self._retire = retire
        self._todo = [process for process in processes if process.stays]
        self._fresh: WorkerProcess | None = None
        self._leaving: WorkerProcess | None = None
        self._by_signals = 0
        log.info("rolling restart, %d to go", len(self._todo))

    def step(self) -> bool:
        """Go on; True when it is over."""
        present = set(self._processes)
        if self._leaving in present:
            return False
        if self._fresh is not None:
            if not self._fresh.ready:
                return False
            self._leaving, self._fresh = self._todo.pop(0), None
            self._by_signals = 0
            if self._leaving in present:
                self._retire(self._leaving)
                return False
        # who died meanwhile was replaced already, by one that started after the signal
        self._todo = [process for process in self._todo if process in present and process.stays]
        if not self._todo:
            log.info("rolling restart is done")
            return True
        self._fresh = self._start(self._todo[0].index)
        return False

    def failed(self, process: WorkerProcess, exit_cause: ExitCause) -> bool:
        """Whether this death of a worker that never got ready ends the restart: it is the new one,
        and its application is why, or signals ended several of them in a row."""
        if process is not self._fresh:
            return False
        self._fresh = None
        if exit_cause.signal:
            self._by_signals += 1
            if self._by_signals < ENDED_BY_SIGNALS:
                log.warning("the new worker %s: the rolling restart starts another", exit_cause)
                return False
        log.error("rolling restart given up: the new worker did not start; the old ones stay")
        return True
