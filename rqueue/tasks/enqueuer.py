"""Who stores the jobs that tasks enqueue: what tasks ask of the client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from rqueue.errors import LifecycleError
from rqueue.model.job import JobState
from rqueue.tasks.options import Options

__all__ = [
    "AsyncHandle",
    "AsyncSender",
    "Handle",
    "Sender",
    "default_async_sender",
    "default_sender",
    "set_default_async_sender",
    "set_default_sender",
]

R_co = TypeVar("R_co", covariant=True)


class Handle(Protocol[R_co]):
    """What `enqueue` returns: the job's id, where it is, and its result when it has one."""

    @property
    def id(self) -> str:
        """The job's id."""
        ...

    @property
    def queue(self) -> str:
        """The queue's name."""
        ...

    @property
    def created(self) -> bool:
        """False when a job of this id had been accepted before, so that nothing was stored."""
        ...

    @property
    def handed_to(self) -> str:
        """The consumer that got the job at once, "" if none."""
        ...

    def state(self) -> JobState:
        """Where the job is now."""
        ...

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the job's result; see the client."""
        ...

    def cancel(self, *, held: bool = True) -> bool:
        """Cancel the job; True if it had not ended."""
        ...


class AsyncHandle(Protocol[R_co]):
    """What `aenqueue` returns."""

    @property
    def id(self) -> str:
        """The job's id."""
        ...

    @property
    def queue(self) -> str:
        """The queue's name."""
        ...

    @property
    def created(self) -> bool:
        """False when a job of this id had been accepted before, so that nothing was stored."""
        ...

    @property
    def handed_to(self) -> str:
        """The consumer that got the job at once, "" if none."""
        ...

    async def state(self) -> JobState:
        """Where the job is now."""
        ...

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the job's result; see the client."""
        ...

    async def cancel(self, *, held: bool = True) -> bool:
        """Cancel the job; True if it had not ended."""
        ...


class Sender(Protocol):
    """Who stores a job: implemented by the client, or by a test."""

    @property
    def target(self) -> str:
        """The queue that its jobs go to when nobody names one; "" when that is the task's."""
        ...

    def enqueue_task(
        self,
        queue: str,
        task: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
        parameters: Sequence[str],
    ) -> Handle[Any]:
        """Store one job. `parameters` names the positional arguments, for `codec.pack`."""
        ...


class AsyncSender(Protocol):
    """The same for asyncio."""

    @property
    def target(self) -> str:
        """The queue that its jobs go to when nobody names one; "" when that is the task's."""
        ...

    async def enqueue_task(
        self,
        queue: str,
        task: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
        parameters: Sequence[str],
    ) -> AsyncHandle[Any]:
        """Store one job. `parameters` names the positional arguments, for `codec.pack`."""
        ...


_NOBODY = "task '{}' has no queue to go to: set RQUEUE_URL, or connect first"
_sender_factory: Callable[[], Sender] | None = None
_async_sender_factory: Callable[[], AsyncSender] | None = None


def set_default_sender(factory: Callable[[], Sender] | None) -> None:
    """Say who stores the jobs of tasks that name no sender. It is called at every enqueue."""
    global _sender_factory
    _sender_factory = factory


def set_default_async_sender(factory: Callable[[], AsyncSender] | None) -> None:
    """The same for `aenqueue`: a factory of its own, as an asyncio client belongs to a loop."""
    global _async_sender_factory
    _async_sender_factory = factory


def default_sender(task: str) -> Sender:
    """Who stores the jobs of `task`. Raises LifecycleError when nobody was named."""
    if _sender_factory is None:
        raise LifecycleError(_NOBODY.format(task))
    return _sender_factory()


def default_async_sender(task: str) -> AsyncSender:
    """Who stores the jobs of `task` from asyncio. Raises LifecycleError when nobody was named."""
    if _async_sender_factory is None:
        raise LifecycleError(_NOBODY.format(task))
    return _async_sender_factory()
