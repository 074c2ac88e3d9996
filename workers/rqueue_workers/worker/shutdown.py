"""When a worker process is to go: SIGTERM, a supervisor that vanished; and its self-pipe."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import monotonic
from types import FrameType
from typing import Any

from rqueue.logs import logger
from rqueue.transport.resp import readable
from rqueue_workers.status_page import CONTINUE, DRAIN, STOP, StatusPage

log = logger("rqueue.worker")

_PR_SET_PDEATHSIG = 1


SURE = 0.6
"""The part of a lease that is left for sure when its supervisor dies, but for the time that it
takes to release what still runs: the last renewal was 0.3 of it ago at most."""


def _nothing(_signal: int, _frame: FrameType | None) -> None:
    """There is news on the page."""


def _named(handler: Any) -> str:
    """A signal handler of the application, as it is known there."""
    if isinstance(handler, signal.Handlers):
        return handler.name
    where = getattr(handler, "__module__", None) or type(handler).__module__
    return f"{where}.{getattr(handler, '__qualname__', type(handler).__qualname__)}"


class Stop:
    """What the process is asked. `level`: CONTINUE, DRAIN, STOP; `deadline`: monotonic time by
    which jobs that run are to be done. `fd` becomes readable when something happens.

    drain, lease: seconds that running jobs get; the second ones at most where the supervisor is
    gone, and nobody renews the leases any more.
    """

    def __init__(self, page: StatusPage, drain: float, lease: float, parent: int) -> None:
        self.level = CONTINUE
        self.deadline = 0.0
        self._page = page
        self._drain = drain
        self._lease = lease
        self._parent = parent
        self._orphaned = False
        self._retiring = False
        self._handlers: dict[signal.Signals, Any] = {}
        self.fd, self._write = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write, False)

    def install(self) -> None:
        """Handle signals, if this is the main thread; ask for one when the supervisor dies."""
        if threading.current_thread() is not threading.main_thread():
            return
        # a terminal's goes to the supervisor as well; ignored, it would be ignored by programs too
        # that jobs start
        self._handle(signal.SIGINT, _nothing)
        self._handle(signal.SIGTERM, self._knock)
        self._handle(signal.SIGURG, _nothing)  # its byte ends the wait
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        if self._parent and sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        self.look()

    def _handle(self, number: signal.Signals, handler: Callable[..., None]) -> None:
        signal.signal(number, handler)
        self.owns(number)

    def owns(self, number: signal.Signals) -> None:
        """The handler of a signal that is set now is the worker's."""
        self._handlers[number] = signal.getsignal(number)

    def reclaim(self) -> None:
        """Take the signals back from the code of the application, which has run, and say so: what
        it does at its import is not meant for a worker."""
        if threading.current_thread() is not threading.main_thread() or not self._handlers:
            return
        for number, ours in self._handlers.items():
            other = signal.signal(number, ours)
            if other != ours:
                log.warning(
                    "worker process %d: the application has set a handler of %s, %s: a worker needs"
                    " that signal, and has taken it back",
                    os.getpid(), number.name, _named(other),
                )  # fmt: skip
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handlers)
        if signal.set_wakeup_fd(self._write, warn_on_full_buffer=False) != self._write:
            log.warning(
                "worker process %d: the application has called signal.set_wakeup_fd: a worker needs"
                " it, and has taken it back",
                os.getpid(),
            )

    def uninstall(self) -> None:
        """Leave the signals alone again."""
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGURG, signal.SIG_DFL)
        fds = self.fd, self._write
        self.fd = self._write = -1
        for fd in fds:
            with suppress(OSError):  # a job may have closed it
                os.close(fd)

    def _knock(self, _signal: int, _frame: FrameType | None) -> None:
        self.ask(max(DRAIN, self._page.asked))

    def look(self) -> None:
        """See whether the supervisor is there and what it asks."""
        if self._parent and os.getppid() != self._parent:
            if not self._orphaned:
                self._orphaned = True
                self.ask(DRAIN)
                self.deadline = min(self.deadline, monotonic() + self._lease * SURE)
        elif self._page.asked > (CONTINUE if self._retiring else self.level):
            self.ask(self._page.asked)

    def ask(self, level: int) -> None:
        """DRAIN or STOP; never back."""
        if level <= (CONTINUE if self._retiring else self.level):
            return
        self._retiring = False
        self.deadline = monotonic() + (0.0 if level == STOP else self._drain)
        self.level = level
        self.wake()

    def retire(self) -> None:
        """The process leaves, and nobody has asked: what runs may end, however long it takes, as
        long as nobody asks."""
        if self.level == CONTINUE:
            self._retiring = True
            self.level = DRAIN
            self.deadline = inf

    def hurry(self, seconds: float) -> None:
        """Where nobody has asked: what is to be done yet has so long."""
        if self.deadline == inf:
            self.deadline = monotonic() + seconds

    def wake(self) -> None:
        """End a wait on `fd`. From any thread."""
        if self._write < 0:
            return
        try:
            os.write(self._write, b"\0")
        except BlockingIOError:
            return  # it is readable, and that is all that is wanted

    def clear(self) -> None:
        """Read what made `fd` readable."""
        try:
            while len(os.read(self.fd, 4096)) == 4096:
                pass
        except BlockingIOError:
            return

    def pause(self, seconds: float) -> None:
        """Wait, but not longer than until something happens."""
        if readable([self.fd], seconds):
            self.clear()
