"""The event loop to which connections of asyncio belong: sockets, locks and tasks live in one."""

from __future__ import annotations

import asyncio

from rqueue.errors import LifecycleError
from rqueue.transport import stand_in

__all__ = ["HomeLoop"]

REMEDY = (
    "make an AsyncQueue in each event loop and close it there (`async with AsyncQueue(...)`), or"
    " take rqueue.aqueue(name), which is the running loop's"
)


class HomeLoop:
    """The loop that used something first, until that is closed."""

    __slots__ = ("_loop",)

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def ended(self) -> bool:
        """Whether it was closed with what belonged to it."""
        return self._loop is not None and self._loop.is_closed()

    def enter(self) -> None:
        """Take the running loop for home, where none is. Raises LifecycleError where another one
        is: asyncio's own error would come in the middle of a call, and name a future."""
        running = asyncio.get_running_loop()
        if self._loop is running or stand_in.name_of():  # in memory nothing belongs to a loop
            return
        if self._loop is None:
            self._loop = running
        else:
            which = "which has ended" if self.ended else "which is another one than the running one"
            raise LifecycleError(
                "an AsyncQueue, with its consumers, putters and handles, belongs to the event loop"
                f" that used it first, {which}: {REMEDY}"
            )

    def leave(self) -> None:
        """Nothing belongs to it any more; the next loop that enters is home."""
        self._loop = None
