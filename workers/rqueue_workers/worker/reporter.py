"""Sends what the jobs of a process report, a few times a second for all of them together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread
from time import monotonic
from typing import Any, Protocol, TypeVar

from rqueue.errors import LifecycleError, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.model.locks import new_gate, new_lock
from rqueue.protocol.call import ScriptCall
from rqueue.transport.connection import Connection

R = TypeVar("R")

log = logger("rqueue.worker")

PAUSE_S = 0.25
"""Seconds between two times that something is sent."""

LONGEST_PAUSE_S = 5.0
"""The same, while Redis is away."""


class Source(Protocol):
    """What there is to be sent, of the jobs of one queue."""

    def send(self, run: Callable[..., Any]) -> None:
        """Send it. Raises the tree of `rqueue.errors`."""


class Reporter:
    """Over a connection, and in a thread, of its own: both are made with the first report. at_once:
    without a thread, each report is sent where it is made."""

    def __init__(self, like: Connection, *, at_once: bool = False) -> None:
        self._sending = new_gate()
        """Held while something is sent, or nothing may be."""
        self._paused = False
        self._like = like
        self._at_once = at_once
        self._connection: Connection | None = None
        self._news: set[Source] = set()
        self._changed = Condition(new_lock())
        self._thread: Thread | None = None
        self._closed = False
        self._pid = os.getpid()

    def tell(self, source: Source) -> None:
        """There is something to be sent. From any thread. Raises LifecycleError in a process that
        a job forked."""
        if os.getpid() != self._pid:
            raise LifecycleError("this process was forked by a job: it cannot report for it")
        if self._at_once:
            source.send(self.run)
            return
        with self._changed:
            self._news.add(source)
            if self._thread is None:
                self._thread = Thread(target=self._work, name="rqueue-reporter", daemon=True)
                self._thread.start()
            self._changed.notify()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Around what is sent from here: one after the other."""
        if self._at_once:
            yield  # from the job's thread, where another call may be in the middle of this one
        else:
            with self._sending:
                yield

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """While nothing is sent from here: what is just being sent is waited for, unless it is
        paused. For who settles."""
        if self._paused:
            yield
        else:
            with self._sending:
                yield

    def pause(self, within: float) -> bool:
        """Send nothing, until `resume`: jobs are to be settled. False where something is just being
        sent, and was not done in so many seconds."""
        if not self._sending.acquire(timeout=within):
            return False
        self._paused = True
        return True

    def resume(self) -> None:
        """Send again."""
        self._paused = False
        self._sending.release()

    def close(self) -> None:
        """Send nothing any more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def run(self, call: ScriptCall[R], *, queue: str, consumer: str) -> R:
        """Run a call; not in two threads at once. Raises the tree of `rqueue.errors`."""
        if self._connection is None:
            self._connection = self._like.twin()
        return self._connection.run(call, queue=queue, consumer=consumer)

    def _work(self) -> None:
        pause = PAUSE_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._news or self._closed)
                if self._closed:
                    break
                news, self._news = self._news, set()
            failed = False
            for source in news:
                try:
                    source.send(self.run)
                except ServerError as error:
                    log.debug("what jobs report is sent later: %s", error)
                    failed = True
                    with self._changed:
                        self._news.add(source)
                except RQueueError as error:
                    log.warning("what jobs report is not sent: %s", error)
            pause = min(LONGEST_PAUSE_S, 2 * pause) if failed else PAUSE_S
            until = monotonic() + pause
            with self._changed:
                self._changed.wait_for(lambda: self._closed, until - monotonic())
        if self._connection is not None:
            self._connection.close()
