"""Workflows that wait until something else has happened, as `rqueue.client.held_enqueues`."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.workflows import AsyncWorkflowHandle
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.workflows import (
    Batches,
    WorkflowHandle,
    packed_workflow,
    store_workflow,
    workflow_handle,
)
from rqueue.client.held_enqueues import Sender
from rqueue.model.ids import check_id, new_id
from rqueue.tasks.workflow import Workflow

__all__ = ["AsyncHeldWorkflowHandle", "HeldWorkflow", "HeldWorkflowHandle"]

R = TypeVar("R")


class HeldWorkflow(Generic[R]):
    """A workflow: its jobs are packed, and stored when `send` is called. `sender`: who calls it
    (`Sender`). Raises what `Queue.enqueue_workflow` raises of its calls."""

    def __init__(
        self,
        queue: Queue,
        workflow: Workflow[R],
        id: str | None,
        *,
        spread: bool,
        sender: object | None = None,
    ) -> None:
        root = new_id() if id is None else check_id(id)
        self.held = True
        self._sender = Sender(sender)
        self._queue = queue
        self._batches: Batches = packed_workflow(queue, workflow, root, spread)
        self._handle = workflow_handle(queue, root, workflow, self._batches)

    @property
    def handle(self) -> HeldWorkflowHandle[R]:
        """The handle of the workflow."""
        its = self._handle
        return HeldWorkflowHandle(self, self._queue, its.id, its.ids, its._ends, its.queues)

    def handle_for(self, queue: AsyncQueue) -> AsyncHeldWorkflowHandle[R]:
        """The same for asyncio."""
        its = self._handle
        return AsyncHeldWorkflowHandle(self, queue, its.id, its.ids, its._ends, its.queues)

    def send(self) -> None:
        """Store its jobs. Raises the server errors, and what refuses one of them."""
        if not self.held:  # it was dropped
            return
        self.held = False
        batches, self._batches = self._batches, ()
        store_workflow(self._queue, self._handle.id, batches)

    def drop(self) -> int:
        """Never send it; of how many jobs, 0: it is not held here any more."""
        count = len(self._handle.ids) if self.held else 0
        self.held, self._batches = False, ()
        return count

    def require_sent(self) -> None:
        """Raise LifecycleError while it is held back: nothing could end it."""
        if self.held:
            raise self._sender.unsent(f"workflow {self._handle.id}")


class HeldWorkflowHandle(WorkflowHandle[R]):
    """The handle of a workflow that is held back. It has its ids at once; what is cancelled before
    it is sent is never sent."""

    def __init__(self, held: HeldWorkflow[R], *args: Any) -> None:
        super().__init__(*args)
        self._held = held

    def result(self, timeout: float | None = None) -> R:
        """Wait for the result, as `WorkflowHandle.result`. Raises LifecycleError while the workflow
        is not sent."""
        self._held.require_sent()
        return super().result(timeout)

    def cancel(self, *, held: bool = True, running: bool = False, kill: bool = False) -> int:
        """Cancel all its jobs, as `WorkflowHandle.cancel`."""
        return self._held.drop() or super().cancel(held=held, running=running, kill=kill)


class AsyncHeldWorkflowHandle(AsyncWorkflowHandle[R]):
    """The same for asyncio."""

    def __init__(self, held: HeldWorkflow[R], *args: Any) -> None:
        super().__init__(*args)
        self._held = held

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the result, as `AsyncWorkflowHandle.result`. Raises LifecycleError while the
        workflow is not sent."""
        self._held.require_sent()
        return await super().result(timeout)

    async def cancel(self, *, held: bool = True, running: bool = False, kill: bool = False) -> int:
        """Cancel all its jobs, as `AsyncWorkflowHandle.cancel`."""
        return self._held.drop() or await super().cancel(held=held, running=running, kill=kill)
