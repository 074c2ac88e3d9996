"""A workflow whose members are drawn while they are enqueued: there may be more of them than a
program can hold.

::

    stream((resize.s(page) for page in pages()), publish.si()).enqueue()

Nothing here talks to Redis.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Any, TypeVar

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.parents import OnFailure, Parents
from rqueue.tasks.enqueues import Enqueues
from rqueue.tasks.other_words import explained
from rqueue.tasks.workflow import Signature
from rqueue.tasks.workflow_steps import Callee, Step, checked_policy

__all__ = ["Stream", "stream"]

R = TypeVar("R")


class Stream(Enqueues[R]):
    """Calls that are drawn one by one, and one that is made when all of them have ended."""

    def __init__(
        self,
        members: Iterable[Signature[Any]] | AsyncIterable[Signature[Any]],
        callback: Signature[R],
        on_failure: OnFailure,
    ) -> None:
        self.members = members
        self.callback = callback
        self.on_failure: OnFailure = on_failure

    def ends(self) -> list[Signature[Any]]:
        """The callback."""
        return [self.callback]

    def __repr__(self) -> str:
        return f"<stream before task '{self.callback.task.name}', no part of others>"

    @property
    def of_asyncio(self) -> bool:
        """Whether its members can be drawn in asyncio alone."""
        return isinstance(self.members, AsyncIterable)

    def adrawn(self) -> AsyncIterable[Any]:
        """Its members, of asyncio."""
        assert isinstance(self.members, AsyncIterable)
        return self.members

    def drawn(self) -> Iterable[Any]:
        """Its members. Raises ConfigError where they are of asyncio."""
        if isinstance(self.members, AsyncIterable):
            raise ConfigError("stream", "its members are of asyncio: await aenqueue()")
        return self.members

    def _goes_to(self) -> tuple[Callee, bool]:
        return self.callback.task, True

    def opening(self, id: str) -> Step:
        """The job that waits for the others. Raises BadArguments and ConfigError."""
        waits = Parents(0, "nothing", self.on_failure, streamed=True)
        return Step(self.callback.request(id, 0), waits)

    def step(self, id: str, member: Any, *, spread: bool) -> Step:
        """The job of one of the members. spread: it is for the queue of its task. Raises
        BadArguments and ConfigError."""
        expect("stream", member, Signature, "a call: task.s(...); a stream has no other members")
        if member.successes or member.failures:
            raise ConfigError(
                "stream", "a member has no callbacks of its own: let it enqueue what follows it"
            )
        own, its = self.callback.task.queue, member.task.queue
        if spread and own != its:
            raise ConfigError(
                "stream",
                f"task '{member.task.name}' is of queue '{its}', and the callback of '{own}': a"
                f" stream is of one queue; Queue('{own}').enqueue_workflow(it) puts all into that",
            )
        return Step(member.request(id, 0), None, counts=True)


@explained("stream", "here it is stream((task.s(i) for i in ...), callback.si())")
def stream(
    members: Iterable[Signature[Any]] | AsyncIterable[Signature[Any]],
    callback: Signature[R],
    *,
    on_failure: OnFailure = "stop",
) -> Stream[R]:
    """Calls side by side, up to a million, that are drawn from `members` while they are enqueued, a
    few hundred at a time, and one that is made when all have ended. It gets no results: it has to
    be immutable, `task.si(...)`. on_failure: as of `chord`. Raises ConfigError."""
    given: object = members
    if isinstance(given, str | bytes) or not isinstance(given, Iterable | AsyncIterable):
        raise ConfigError("stream", f"{shown(given)} gives no calls: task.s(...)")
    expect("callback", callback, Signature, "a call: task.si(...)")
    if not callback.immutable:
        raise ConfigError(
            "stream",
            f"task '{callback.task.name}' would get the results of all members, and nobody keeps"
            " those of a stream: make it immutable (.si), and let it read what the members stored",
        )
    return Stream(members, callback, checked_policy(on_failure))
