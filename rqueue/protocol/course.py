"""A course of calls: several, of which each depends on the reply to the one before, without I/O.

Who makes the calls writes a generator: it gives one call after the other, is sent the reply to each
or thrown its error, and returns what came of all. Who drives it may wait for each reply
(`run_course`), or see to other things until it is there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

from rqueue.protocol.call import ScriptCall

__all__ = ["Calls", "Course", "arun_course", "run_course"]

A = TypeVar("A")
R = TypeVar("R")

Calls = Generator[ScriptCall[Any], Any, R]
"""Gives calls, is sent their replies or thrown their errors, and returns what came of them."""


class Course(Generic[A, R]):
    """The calls, driven: what to send next, until nothing is. Raises what they raise. A call may be
    given with what says where it goes (`rqueue.protocol.sharding`)."""

    def __init__(self, calls: Generator[A, Any, R]) -> None:
        self._calls = calls
        self.call: A | None = None
        """What is to be sent now; None when all is done."""
        self.outcome: R
        """What came of it, when all is done."""
        self._go(lambda: next(calls))

    def answered(self, reply: Any) -> None:
        """The reply to the call."""
        self._go(lambda: self._calls.send(reply))

    def refused(self, error: BaseException) -> None:
        """The call failed. Raises the error where nothing is done about it."""
        self._go(lambda: self._calls.throw(error))

    def _go(self, step: Callable[[], A]) -> None:
        self.call = None  # also where it raises
        try:
            self.call = step()
        except StopIteration as end:
            self.outcome = end.value


def run_course(calls: Generator[A, Any, R], run: Callable[[A], Any]) -> R:
    """All calls, one after the other. Raises what is not mended."""
    course = Course(calls)
    while course.call is not None:
        try:
            reply = run(course.call)
        except BaseException as error:
            course.refused(error)
        else:
            course.answered(reply)
    return course.outcome


async def arun_course(calls: Generator[A, Any, R], run: Callable[[A], Awaitable[Any]]) -> R:
    """`run_course` for asyncio."""
    course = Course(calls)
    while course.call is not None:
        try:
            reply = await run(course.call)
        except BaseException as error:
            course.refused(error)
        else:
            course.answered(reply)
    return course.outcome
