"""Something is run in the middle of a call of ours, at any of its lines: as a signal handler, a
finalizer that the garbage collector runs, or another thread's fork would be."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import rqueue

T = TypeVar("T")
OURS = str(Path(rqueue.__file__).parent)


class Interruption:
    """Runs `inner` once, at the `at`-th place in our files (from 1; 0 only counts). Places are the
    lines; or, where `inner` raises, those at which Python looks for signals: a function of ours
    begins, or one in C has returned. `places`: how many there were; `place`: the one."""

    def __init__(self, at: int, inner: Callable[[], object], *, raises: bool = False) -> None:
        self.places = 0
        self.place = ""
        self._at = at
        self._inner = inner
        self._raises = raises

    def run(self, call: Callable[[], T]) -> T:
        """Make the call, and be in its middle. What `inner` raises is raised."""
        if self._raises:
            sys.setprofile(self._look)
            try:
                return call()
            finally:
                sys.setprofile(None)
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return call()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(OURS) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self._reached(frame)
        return self._line

    def _look(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(OURS):
            self._reached(frame)

    def _reached(self, frame: FrameType) -> None:
        self.places += 1
        if self.places == self._at:
            self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self._inner()  # it is not traced: it runs in the trace function


def places_of(call: Callable[[], object], *, raises: bool = False) -> range:
    """The places of a call."""
    counting = Interruption(0, lambda: None, raises=raises)
    counting.run(call)
    return range(1, counting.places + 1)


def in_time(call: Callable[[], T], seconds: float) -> T:
    """Make a call that may hang, in a thread that is left behind then. Raises TimeoutError."""
    found: list[Any] = []

    def make() -> None:
        try:
            found.append((True, call()))
        except BaseException as error:
            found.append((False, error))

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    thread.join(seconds)
    if not found:
        raise TimeoutError(f"it hangs after {seconds:g} s")
    worked, what = found[0]
    if not worked:
        raise what
    return what  # type: ignore[no-any-return]
