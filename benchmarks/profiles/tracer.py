"""The way of a thread through rqueue: every function entered, every send, every wait."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic_ns
from types import FrameType
from typing import Any, NamedTuple

OURS = ("rqueue", "rqueue_workers")
WAITS = ("select", "poll")
SENDS = ("send", "sendall")
INLINE = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<module>")
"""Code that Python enters like a function in some versions, and that reads as part of another."""


class Event(NamedTuple):
    """One event: `call` (module, function), `send`, or `wait` (begin to end)."""

    kind: str
    module: str
    function: str
    begin: int
    end: int


class Tracer:
    """The events of one thread, in order. A generator that goes on is entered again."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._waits_since = 0

    def start(self) -> None:
        """Follow this thread from now on."""
        sys.setprofile(self._hook)

    def stop(self) -> None:
        """Follow it no longer. A wait that is going on ends now."""
        sys.setprofile(None)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Follow this thread within the block."""
        self.start()
        try:
            yield
        finally:
            self.stop()

    def _hook(self, frame: FrameType, what: str, argument: Any) -> None:
        if what == "call":
            module = frame.f_globals.get("__name__", "")
            name = frame.f_code.co_name
            if module.partition(".")[0] in OURS and name not in INLINE:
                function = getattr(frame.f_code, "co_qualname", name)
                now = monotonic_ns()
                self.events.append(Event("call", module, function, now, now))
        elif what == "c_call":
            name = getattr(argument, "__name__", "")
            if name in SENDS and isinstance(getattr(argument, "__self__", None), socket.socket):
                now = monotonic_ns()
                self.events.append(Event("send", "", name, now, now))
            elif name in WAITS:
                self._waits_since = monotonic_ns()
        elif what == "c_return" and getattr(argument, "__name__", "") in WAITS:
            self.events.append(Event("wait", "", "", self._waits_since, monotonic_ns()))


def between(events: list[Event], first: int, second: int) -> list[Event] | None:
    """The events from the end of the wait that was going on at one moment to the beginning of the
    one at another; None if there was no wait at one of them."""
    waits = [index for index, event in enumerate(events) if event.kind == "wait"]
    begin = [i for i in waits if events[i].begin < first < events[i].end]
    end = [i for i in waits if events[i].begin < second < events[i].end]
    return events[begin[0] + 1 : end[0]] if begin and end else None
