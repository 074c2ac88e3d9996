"""What is enqueued once it is put together: a workflow, for those who made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rqueue.errors import ConfigError
from rqueue.tasks.enqueuer import DEFAULTS
from rqueue.tasks.other_words import WORKFLOW_WORDS, explained, other_attribute
from rqueue.tasks.workflow_steps import Callee, taker_of

if TYPE_CHECKING:
    from rqueue.client._async.workflows import AsyncWorkflowHandle
    from rqueue.client._sync.workflows import WorkflowHandle

__all__ = ["Enqueues"]

R = TypeVar("R")

BEFORE_IT = "options stand before each call: task.options(queue=..., at=..., ttl=...).s(...)"


class Enqueues(Generic[R]):
    """What a workflow is to its callers: it is enqueued, and no more."""

    if not TYPE_CHECKING:  # to type checkers a word of another queue is an error as it is

        def __call__(self, /, *args: object, **kwargs: object) -> Any:
            """Raise ConfigError: with Celery it runs a call here, or enqueues a workflow."""
            raise ConfigError("workflow", "it runs after .enqueue(); a task is called: task(...)")

        def __getattr__(self, name: str) -> Any:
            raise other_attribute("a workflow", name, WORKFLOW_WORDS)

    @explained("enqueue", BEFORE_IT)
    def enqueue(self, *, id: str | None = None) -> WorkflowHandle[R]:
        """Enqueue it, each of its jobs into the queue of its task; see `Queue.enqueue_workflow`."""
        task, spread = self._goes_to()
        # a queue, and not any enqueuer: a workflow is several jobs
        store: Any = task._enqueuer or DEFAULTS.enqueuers[task.queue]
        handle: WorkflowHandle[R] = taker_of(store).enqueue_workflow(self, id=id, spread=spread)
        return handle

    @explained("aenqueue", BEFORE_IT)
    async def aenqueue(self, *, id: str | None = None) -> AsyncWorkflowHandle[R]:
        """`enqueue` for asyncio."""
        task, spread = self._goes_to()
        store: Any = task._async_enqueuer or DEFAULTS.async_enqueuer(task.queue)
        taker = taker_of(store)
        handle: AsyncWorkflowHandle[R] = await taker.enqueue_workflow(self, id=id, spread=spread)
        return handle

    def _goes_to(self) -> tuple[Callee, bool]:
        """The task whose queue gets its last call, and whether others go elsewhere."""
        raise NotImplementedError
