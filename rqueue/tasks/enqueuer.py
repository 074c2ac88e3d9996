"""Who stores the jobs that tasks enqueue: what tasks ask of the client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rqueue.errors import LifecycleError
from rqueue.tasks.options import Options

if TYPE_CHECKING:
    from rqueue.client._async.job_handle import AsyncJobHandle
    from rqueue.client._sync.job_handle import JobHandle

__all__ = [
    "AsyncSender",
    "Sender",
    "default_async_sender",
    "default_sender",
    "set_default_async_sender",
    "set_default_sender",
]


class Sender(Protocol):
    """Who stores a job: the client's queues and putters."""

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
    ) -> JobHandle[Any]:
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
    ) -> AsyncJobHandle[Any]:
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
