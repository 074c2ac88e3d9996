"""Signals, as bytes in a pipe: the supervisor reads them when it is ready to, one after another."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from rqueue.logs import logger

log = logger("rqueue.worker")

HEARD = (
    signal.SIGCHLD,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGTSTP,
)


def _heard(_number: int, _frame: FrameType | None) -> None:
    """Do nothing here: the C handler wrote the number into the pipe."""


class Inbox:
    """The signals that arrived. `fileno()` is readable when there are some."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._before: dict[signal.Signals, Any] = {}
        self._wakeup_before = -1

    def open(self) -> None:
        """Take the signals over. Only the main thread may."""
        # one that comes meanwhile is heard behind it: the handler alone would swallow it
        with self.held_back():
            self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
            for number in HEARD:
                self._before[number] = signal.signal(number, _heard)

    def close(self) -> None:
        """Restore the handlers that were there before."""
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            # None: a handler that was not installed from Python, which cannot be put back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()
        os.close(self._read)
        os.close(self._write)

    def fileno(self) -> int:
        """For select."""
        return self._read

    def take(self) -> list[signal.Signals]:
        """What arrived since the last time, in order; a burst of one signal may be fewer."""
        try:
            return [signal.Signals(number) for number in os.read(self._read, 4096)]
        except BlockingIOError:
            return []

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """No signal arrives before the end. Around a fork: none meets a child that still has its
        parent's handlers."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def forget_in_child(self) -> None:
        """In a forked child: the defaults again, but for SIGINT, which is the supervisor's to hear.

        SIGINT gets a handler that does nothing; ignored, it would also be ignored by whatever
        programs jobs start.
        """
        signal.set_wakeup_fd(-1)
        for number in HEARD:
            signal.signal(number, _heard if number is signal.SIGINT else signal.SIG_DFL)
        os.close(self._read)
        os.close(self._write)


class Lifeline:
    """Tells the children that the supervisor died, however it died: a pipe that only it can write
    to. Nothing is ever written; its end is the message."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def follow(self) -> None:
        """In a forked child: get a SIGTERM, so drain, when the supervisor is gone."""
        os.close(self._write)
        threading.Thread(target=self._watch, name="rqueue-lifeline", daemon=True).start()

    def _watch(self) -> None:
        # signals are for the main thread: only there do they interrupt what a job waits for
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        # a read would end where a job has set the pipe not to block, which all workers share, later
        # ones too
        with suppress(OSError):
            end = select.poll()
            end.register(self._read, 0)
            end.poll()
        log.warning("worker process %d: the supervisor is gone; leaving", os.getpid())
        os.kill(os.getpid(), signal.SIGTERM)

    def close(self) -> None:
        """In the supervisor, once no child is left."""
        os.close(self._read)
        os.close(self._write)
