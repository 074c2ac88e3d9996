"""What stores the jobs that tasks enqueue: what tasks ask of the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from rqueue.tasks.request import JobRequest

if TYPE_CHECKING:
    from rqueue.client._async.job_handle import AsyncJobHandle
    from rqueue.client._sync.job_handle import JobHandle

__all__ = ["DEFAULTS", "AsyncEnqueuer", "Enqueuer", "MadeEnqueuers"]


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


class MadeEnqueuers(dict[str, Enqueuer]):
    """Enqueuers by the names of their queues: each is made when it is looked up, and not kept."""

    def __init__(self, make: Callable[[str], Enqueuer]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, queue: str) -> Enqueuer:
        return self._make(queue)


class Defaults:
    """What stores the jobs of tasks that name no sender, by the name of the queue; looked up at
    every enqueue. The package sets it when it is imported (the queues of the process), and an
    integration may put its own in their place. That of asyncio is called, since it is another one
    in each loop, to which its client belongs."""

    enqueuers: Mapping[str, Enqueuer]
    async_enqueuer: Callable[[str], AsyncEnqueuer]


DEFAULTS = Defaults()
