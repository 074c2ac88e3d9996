"""Interval timers, which a process has one of each kind: a job that leaves one behind would strike
the next one with it."""

from __future__ import annotations

import signal

from rqueue.logs import logger

log = logger("rqueue.worker")

KINDS = {
    signal.ITIMER_REAL: "ITIMER_REAL (signal.alarm, setitimer)",
    signal.ITIMER_VIRTUAL: "ITIMER_VIRTUAL",
    signal.ITIMER_PROF: "ITIMER_PROF",
}


class Timers:
    """Those that the application has set before the first job are its own, and left alone."""

    def __init__(self) -> None:
        self._kinds: list[int] = []
        self._said = False

    def watch(self) -> None:
        """From now on a timer is that of a job."""
        self._kinds = [kind for kind in KINDS if not signal.getitimer(kind)[0]]

    def clear(self) -> None:
        """Take away what a job of the main thread has left behind."""
        for kind in self._kinds:
            if signal.setitimer(kind, 0)[0] and not self._said:
                self._said = True
                log.warning(
                    "a job left a timer behind, %s: it is taken away, and so are later ones, in"
                    " silence; a job has to take its timers away itself",
                    KINDS[kind],
                )
