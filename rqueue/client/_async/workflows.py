"""Workflows as they are enqueued: their jobs, their results, their end."""

from __future__ import annotations

from time import monotonic
from typing import Any, Generic, TypeVar

from rqueue.client._async.enqueuing import AsyncEnqueuing
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.errors import NotConfirmed, RQueueError, ServerError
from rqueue.model.ids import check_id, new_id
from rqueue.protocol.workflow_packing import packed_steps
from rqueue.tasks.workflow import Workflow

__all__ = ["AsyncWorkflowHandle", "enqueue_workflow"]

R = TypeVar("R")


class AsyncWorkflowHandle(Generic[R]):
    """A workflow that was enqueued. id: of the job whose result is its own; of a group the
    beginning of all ids. ids: of its jobs, those that wait before those that they wait for."""

    def __init__(self, queue: AsyncEnqueuing, id: str, ids: list[str], ends: list[str]) -> None:
        self._queue = queue
        self._ends = ends
        self.id = id
        self.ids = ids

    @property
    def jobs(self) -> list[AsyncJobHandle[Any]]:
        """The handles of the jobs whose results are that of the workflow: one, or those of a
        group."""
        return [AsyncJobHandle(self._queue, id_) for id_ in self._ends]

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the result, at most `timeout` seconds (None: for ever): that of the last call,
        of a group the list of its members' results. Raises what `AsyncJobHandle.result` raises; a
        job that was cancelled because another one failed says so (JobCancelled)."""
        until = None if timeout is None else monotonic() + timeout
        results = []
        for job in self.jobs:
            left = None if until is None else max(0.0, until - monotonic())
            results.append(await job.result(left))
        result: Any = results if self._ends != [self.id] else results[0]
        value: R = result
        return value

    async def cancel(self, *, held: bool = True) -> int:
        """Cancel all its jobs, those that wait for others first, so that nothing of it begins any
        more; returns how many had not ended. held: also those that workers run."""
        return sum([bool(await self._queue.cancel(id_, held=held)) for id_ in self.ids])

    def __repr__(self) -> str:
        return f"<workflow {self.id!r} of {len(self.ids)} jobs of queue {self._queue.name!r}>"


async def enqueue_workflow(
    queue: AsyncEnqueuing, workflow: Workflow[R], id: str | None
) -> AsyncWorkflowHandle[R]:
    """See `AsyncQueue.enqueue_workflow`."""
    root = new_id() if id is None else check_id(id)
    # all of them are made before the first one is sent: what cannot be enqueued changes nothing
    batches = list(packed_steps(queue._packer, workflow.steps(root)))
    stored: list[str] = []
    try:
        for batch in batches:
            answer = await queue._enqueued(batch.call(queue.keys), None)
            its, known = [put.id for put, _ in batch.jobs], {*answer.known}
            stored += [id_ for place, id_ in enumerate(its) if place not in known]
            queue._require_confirmed(answer.unconfirmed, its)
    except (ServerError, NotConfirmed) as error:
        error.add_note(
            f"workflow {root!r} may be there in part: enqueued as id={root!r} it goes on"
        )
        raise
    except RQueueError as error:
        await _withdraw(queue, stored, error)
        raise
    ids = [put.id for batch in batches for put, _ in batch.jobs]
    return AsyncWorkflowHandle(queue, root, ids, workflow.results_of(root))


async def _withdraw(queue: AsyncEnqueuing, ids: list[str], error: RQueueError) -> None:
    """The rest of a workflow is refused: what this call has stored of it must not run."""
    try:
        for id_ in ids:
            await queue.cancel(id_)
    except RQueueError as second:
        error.add_note(f"of the workflow {len(ids)} jobs were stored, and not cancelled: {second}")
