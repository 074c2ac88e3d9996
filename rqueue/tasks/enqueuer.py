"""What stores the jobs that tasks enqueue: what tasks ask of the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from rqueue.tasks.request import JobRequest

if TYPE_CHECKING:
    from rqueue.client._async.job_handle import AsyncJobHandle
    from rqueue.client._sync.job_handle import JobHandle

__all__ = ["DEFAULTS", "AsyncEnqueuer", "Enqueuer"]


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


class Defaults:
    """What stores the jobs of tasks that name no sender: functions from a queue's name to its
    enqueuer, called at every enqueue. The package sets them when it is imported (the queues of the
    process), and an integration may put its own in their place. That of asyncio is another one: its
    client belongs to a loop."""

    enqueuer: Callable[[str], Enqueuer]
    async_enqueuer: Callable[[str], AsyncEnqueuer]


DEFAULTS = Defaults()
