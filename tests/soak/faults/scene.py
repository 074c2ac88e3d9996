"""What a fault may do, and how what it did to whom is put on record.

The verdict excuses a job that begins again only by these records: who was killed, frozen, asked to
stop at once, or kept from Redis, and when.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from tests.soak.field import Field

Track = Literal["workers", "pools", "server", "network", "clients", "jobs"]
TRACKS: tuple[Track, ...] = ("workers", "pools", "server", "network", "clients", "jobs")
"""Faults of a track come one after another; those of different tracks at once."""


class NoTarget(Exception):
    """There is nobody just now whom the fault could hit; it does not count."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault. `weight`: how often it comes, against the others of its track."""

    name: str
    track: Track
    act: Callable[[Scene], None]
    weight: float = 1.0


class Scene:
    """The field, as one fault meets it. `draw` decides all that is left to chance."""

    def __init__(self, field: Field, draw: random.Random, over: threading.Event) -> None:
        self.field = field
        self.draw = draw
        self.lease = field.lease
        self._over = over

    def wait(self, seconds: float) -> None:
        """Let a fault last; less if the soak is over."""
        self._over.wait(seconds)

    def kill(self, pids: Iterable[int], number: signal.Signals = signal.SIGKILL) -> None:
        """End processes by a signal that they cannot, or do not, handle."""
        hit = False
        for pid in filter(None, pids):  # 0: it has just ended, and would be our own group
            with suppress(ProcessLookupError):
                at = time.monotonic()
                os.kill(pid, number)
                self._effect("death", at, [pid], signal=number.name)
                hit = True
        if not hit:
            raise NoTarget

    def tell(self, pid: int, number: signal.Signals) -> None:
        """Send a signal that a pool or worker acts on."""
        at = time.monotonic()
        if not pid:
            raise NoTarget
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            raise NoTarget from None
        self._effect("signalled", at, [pid], signal=number.name)

    def freeze(self, pids: Iterable[int], seconds: float) -> None:
        """Stop processes for a while."""
        stopped = []
        at = time.monotonic()
        for pid in filter(None, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        if not stopped:
            raise NoTarget
        try:
            self.wait(seconds)
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self._effect("freeze", at, stopped)

    @contextmanager
    def away(self, scope: str) -> Iterator[None]:
        """While this lasts, nobody of `scope` gets an answer of Redis."""
        at = time.monotonic()
        try:
            yield
        finally:
            self._effect("away", at, [], scope=scope)

    def _effect(self, kind: str, since: float, pids: list[int], **facts: str) -> None:
        self.field.recorder.write(
            "effect", kind=kind, since=since, until=time.monotonic(), pids=pids, **facts
        )
