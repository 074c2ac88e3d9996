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
    "AsyncEnqueuer",
    "Enqueuer",
    "default_async_enqueuer",
    "default_enqueuer",
    "set_default_async_enqueuer",
    "set_default_enqueuer",
]


class Enqueuer(Protocol):
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
        """Store one job. `parameters`: the names of its positional arguments."""
        ...


class AsyncEnqueuer(Protocol):
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
        """Store one job. `parameters`: the names of its positional arguments."""
        ...


_NOBODY = "task '{}' has no queue to go to: set RQUEUE_URL, or connect first"
_enqueuer_factory: Callable[[], Enqueuer] | None = None
_async_enqueuer_factory: Callable[[], AsyncEnqueuer] | None = None


def set_default_enqueuer(factory: Callable[[], Enqueuer] | None) -> None:
    """Say who stores the jobs of tasks that name no sender. It is called at every enqueue."""
    global _enqueuer_factory
    _enqueuer_factory = factory


def set_default_async_enqueuer(factory: Callable[[], AsyncEnqueuer] | None) -> None:
    """The same for `aenqueue`: a factory of its own, as an asyncio client belongs to a loop."""
    global _async_enqueuer_factory
    _async_enqueuer_factory = factory


def default_enqueuer(task: str) -> Enqueuer:
    """Who stores the jobs of `task`. Raises LifecycleError when nobody was named."""
    if _enqueuer_factory is None:
        raise LifecycleError(_NOBODY.format(task))
    return _enqueuer_factory()


def default_async_enqueuer(task: str) -> AsyncEnqueuer:
    """Who stores the jobs of `task` from asyncio. Raises LifecycleError when nobody was named."""
    if _async_enqueuer_factory is None:
        raise LifecycleError(_NOBODY.format(task))
    return _async_enqueuer_factory()
