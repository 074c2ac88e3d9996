"""Waking the thread that works at the dispatcher: the main thread in its wait, or the stand-by
thread while the main thread is in a job."""

from __future__ import annotations

import threading

from rqueue_workers.worker.current_job import CurrentJob
from rqueue_workers.worker.shutdown import Stop


class News:
    """Executors tell it that something changed; it knows neither them nor the dispatcher."""

    def __init__(self, slot: CurrentJob, stop: Stop) -> None:
        self.rung = False
        """Since it was looked at last."""
        self.parked = False
        """The stand-by thread sleeps until the main thread begins to run jobs."""
        self.event = threading.Event()
        """The stand-by thread sleeps on it."""
        self._slot = slot
        self._stop = stop

    def tell(self) -> None:
        """The thread that works at the dispatcher is to look. From any thread."""
        if not self.rung:
            self.rung = True
            if self._slot.busy:
                self.event.set()
            else:
                self._stop.wake()

    def unpark(self) -> None:
        """The main thread runs jobs, and said so in its slot: the stand-by thread has to watch."""
        self.parked = False
        self.event.set()
