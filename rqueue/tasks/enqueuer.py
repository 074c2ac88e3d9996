"""What stores the jobs that tasks enqueue: what tasks ask of the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from rqueue.errors import LifecycleError
from rqueue.tasks.request import JobRequest

if TYPE_CHECKING:
    from rqueue.client._async.job_handle import AsyncJobHandle
    from rqueue.client._sync.job_handle import JobHandle

__all__ = [
    "AsyncEnqueuer",
    "Enqueuer",
    "default_async_enqueuer",
    "default_enqueuer",
    "set_default_async_enqueuer",
    "set_default_enqueuer",
]


class Enqueuer(Protocol):
    """What stores a job: the client's queues and putters."""

    @property
    def target(self) -> str:
        """The queue that its jobs go to when nobody names one; "" when that is the task's."""
        ...

    def enqueue_request(self, request: JobRequest) -> JobHandle[Any]:
        """Store one job."""
        ...


class AsyncEnqueuer(Protocol):
    """The same for asyncio."""

    @property
    def target(self) -> str:
        """The queue that its jobs go to when nobody names one; "" when that is the task's."""
        ...

    async def enqueue_request(self, request: JobRequest) -> AsyncJobHandle[Any]:
        """Store one job."""
        ...


_NO_ENQUEUER = "task '{}' has no queue to go to: set RQUEUE_URL, or connect first"
_enqueuer_factory: Callable[[str], Enqueuer] | None = None
_async_enqueuer_factory: Callable[[str], AsyncEnqueuer] | None = None


def set_default_enqueuer(factory: Callable[[str], Enqueuer] | None) -> None:
    """Set what stores the jobs of tasks that name no sender: a function from a queue's name to its
    enqueuer, called at every enqueue."""
    global _enqueuer_factory
    _enqueuer_factory = factory


def set_default_async_enqueuer(factory: Callable[[str], AsyncEnqueuer] | None) -> None:
    """The same for `aenqueue`: a factory of its own, as an asyncio client belongs to a loop."""
    global _async_enqueuer_factory
    _async_enqueuer_factory = factory


def default_enqueuer(task: str, queue: str) -> Enqueuer:
    """What stores the jobs of `task` in `queue`. Raises LifecycleError where none was set."""
    if _enqueuer_factory is None:
        raise LifecycleError(_NO_ENQUEUER.format(task))
    return _enqueuer_factory(queue)


def default_async_enqueuer(task: str, queue: str) -> AsyncEnqueuer:
    """The same for asyncio."""
    if _async_enqueuer_factory is None:
        raise LifecycleError(_NO_ENQUEUER.format(task))
    return _async_enqueuer_factory(queue)
