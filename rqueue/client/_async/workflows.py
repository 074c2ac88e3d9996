"""Workflows as they are enqueued: their jobs, their results, their end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rqueue.client._async.enqueuing import AsyncEnqueuing
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.errors import (
    NotConfirmed,
    RQueueError,
    ServerError,
    WorkflowEnded,
    WorkflowExists,
)
from rqueue.model.ids import check_id, new_id
from rqueue.model.job import parse_header
from rqueue.protocol import commands
from rqueue.protocol.job_packer import Batch
from rqueue.protocol.workflow_packing import packed_spread, packed_steps, signed
from rqueue.tasks.other_words import WORKFLOW_HANDLE_WORDS, other_attribute
from rqueue.tasks.workflow import Workflow

__all__ = [
    "AsyncWorkflowHandle",
    "Batches",
    "enqueue_workflow",
    "packed_workflow",
    "store_workflow",
    "workflow_handle",
]

R = TypeVar("R")
Batches = Sequence[tuple[str, Batch]]
"""Jobs of a workflow for one step each, with the queues that they are for."""


class AsyncWorkflowHandle(Generic[R]):
    """A workflow that was enqueued. id: of the job whose result is its own; of a group the
    beginning of all ids. ids: of its jobs, those that wait before those that they wait for.
    queues: of the jobs that are in another queue than its own, id -> queue."""

    def __init__(
        self,
        queue: AsyncEnqueuing,
        id: str,
        ids: Sequence[str],
        ends: list[str],
        queues: Mapping[str, str] | None = None,
    ) -> None:
        self._queue = queue
        self._ends = ends
        self.id = id
        self.ids = ids
        self.queues = queues or {}

    if not TYPE_CHECKING:  # to type checkers a word of another queue is an error as it is

        def __getattr__(self, name: str) -> Any:
            raise other_attribute("a workflow's handle", name, WORKFLOW_HANDLE_WORDS)

    def _at(self, id: str) -> AsyncEnqueuing:
        name = self.queues.get(id)
        return self._queue if name is None else self._queue.at(name)

    @property
    def jobs(self) -> list[AsyncJobHandle[Any]]:
        """The handles of the jobs whose results are that of the workflow: one, or those of a
        group."""
        return [AsyncJobHandle(self._at(id_), id_) for id_ in self._ends]

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

    async def cancel(self, *, held: bool = True, running: bool = False, kill: bool = False) -> int:
        """Cancel all its jobs, those that wait for others first, so that nothing of it begins any
        more; returns how many had not ended. held: also those that workers run. running, kill: stop
        their code, as `AsyncQueue.cancel` does, without waiting for its end."""
        count = 0
        for id_ in self.ids:
            count += bool(await self._at(id_).cancel(id_, held=held, running=running, kill=kill))
        return count

    def __repr__(self) -> str:
        return f"<workflow {self.id!r} of {len(self.ids)} jobs of queue {self._queue.name!r}>"


async def enqueue_workflow(
    queue: AsyncEnqueuing, workflow: Workflow[R], id: str | None, spread: bool
) -> AsyncWorkflowHandle[R]:
    """See `AsyncQueue.enqueue_workflow`, of a workflow whose calls are all there."""
    root = new_id() if id is None else check_id(id)
    # all of them are made before the first one is sent: what cannot be enqueued changes nothing
    batches = packed_workflow(queue, workflow, root, spread)
    if id is not None:
        await _refuse_another(root, queue, batches)
    await store_workflow(queue, root, batches)
    return workflow_handle(queue, root, workflow, batches)


def packed_workflow(
    queue: AsyncEnqueuing, workflow: Workflow[Any], root: str, spread: bool
) -> Batches:
    """The jobs of a workflow, not signed yet, in the order in which they are to be stored: batches
    of one step each, and their queues. Raises BadArguments, ConfigError and NotEncodable."""
    if spread:
        steps = workflow.steps(root, spread=True)
        return list(packed_spread(lambda name: queue.at(name)._packer, steps))
    return [(queue.name, batch) for batch in packed_steps(queue._packer, workflow.steps(root))]


def workflow_handle(
    queue: AsyncEnqueuing, root: str, workflow: Workflow[R], batches: Batches
) -> AsyncWorkflowHandle[R]:
    """The handle of a workflow of these jobs."""
    ids = [put.id for _, batch in batches for put, _ in batch.jobs]
    queues = {
        put.id: name for name, batch in batches if name != queue.name for put, _ in batch.jobs
    }
    return AsyncWorkflowHandle(queue, root, ids, workflow.results_of(root), queues)


async def _refuse_another(root: str, queue: AsyncEnqueuing, batches: Batches) -> None:
    """Raise WorkflowExists if jobs of these ids are there that wait for others than these do."""
    for name, batch in batches:
        target = queue.at(name)
        ids = [put.id for put, _ in batch.jobs]
        asked = commands.read_keys(target.keys.meta, [("HMGET", target.keys.jobs, *ids)])
        (values,) = await target._run(asked)
        for (put, _), value in zip(batch.jobs, values, strict=True):
            header = parse_header(value.partition(b";")[0]) if value else None
            # of one that waits no more nothing says for whom it did
            if header is not None and header.waits and header.waits != put.waits:
                raise WorkflowExists(name, root)


async def store_workflow(queue: AsyncEnqueuing, root: str, batches: Batches) -> None:
    """Sign them, and store them. Raises WorkflowEnded and the server errors; what was stored before
    a refusal is cancelled."""
    stored: list[tuple[AsyncEnqueuing, str]] = []
    try:
        for name, batch in batches:
            target = queue.at(name)
            answer = await target._enqueued(signed(target._packer, batch).call(target.keys), None)
            its, known = [put.id for put, _ in batch.jobs], {*answer.known}
            stored += [(target, id_) for place, id_ in enumerate(its) if place not in known]
            target._require_confirmed(answer.unconfirmed, its)
    except (ServerError, NotConfirmed) as error:
        error.add_note(
            f"workflow {root!r} may be there in part: enqueued as id={root!r} it goes on"
        )
        raise
    except RQueueError as error:
        await _withdraw(stored, error)
        if isinstance(error, WorkflowEnded) and await _goes_on(queue, root):
            raise WorkflowExists(error.queue, root) from error
        raise


async def _goes_on(queue: AsyncEnqueuing, root: str) -> bool:
    """Whether a workflow's last job is there, and has not ended."""
    shown = await queue._run(commands.show(queue.keys, root))
    return shown.state not in ("ended", "unknown")


async def _withdraw(stored: list[tuple[AsyncEnqueuing, str]], error: RQueueError) -> None:
    """The rest of a workflow is refused: what this call has stored of it must not run."""
    try:
        for queue, id_ in stored:
            await queue.cancel(id_)
    except RQueueError as second:
        error.add_note(
            f"of the workflow {len(stored)} jobs were stored, and not cancelled: {second}"
        )
