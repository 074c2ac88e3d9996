"""Workflows in an outbox: what is written of one, and which of its jobs are sent before others.

A job of a workflow through several queues is sent when those are in their queues that wait for it:
it might end before, and nobody would hear of it. What waits is written before what it waits for, in
one transaction, so the first job of the outbox never waits for another one to be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.workflows import WorkflowHandle, packed_workflow, workflow_handle
from rqueue.errors import ConfigError
from rqueue.model.ids import check_id, new_id
from rqueue.model.parents import Dependant
from rqueue.model.terms import Terms
from rqueue.protocol.commands.enqueue import Put
from rqueue.tasks.stream import Stream
from rqueue.tasks.workflow import Workflow

__all__ = ["Fresh", "Sendable", "Unsent", "sendable", "written_workflow"]

R = TypeVar("R")


def written_workflow(
    queue: Queue, workflow: Workflow[R] | Stream[R], id: str | None, *, spread: bool
) -> tuple[list[tuple[str, Put]], WorkflowHandle[R]]:
    """The jobs of a workflow in the order in which they are to be written, each with its queue, and
    its handle. Raises what `Queue.enqueue_workflow` raises of its calls, and ConfigError for a
    stream."""
    if isinstance(workflow, Stream):
        raise refused_stream("enqueue it when the transaction is committed, or without the outbox")
    root = new_id() if id is None else check_id(id)
    batches = packed_workflow(queue, workflow, root, spread)
    rows = [(name, put) for name, batch in batches for put, _ in batch.jobs]
    return rows, workflow_handle(queue, root, workflow, batches)


def refused_stream(instead: str) -> ConfigError:
    """The error for a stream inside a transaction; what to do instead."""
    return ConfigError(
        "stream",
        f"its members are stored while they are drawn, so it waits for no commit: {instead}",
    )


class Fresh(NamedTuple):
    """A job of an outbox that has no number yet. seq: its place there."""

    seq: int
    queue: str
    id: str
    terms: str


class Unsent(NamedTuple):
    """A job that is in an outbox, sent or not. refused: its queue has refused it."""

    queue: str
    id: str
    refused: bool


@dataclass(slots=True)
class Sendable:
    """What may become of jobs that have no numbers yet. ready: of each queue the places of those
    that may be sent now. kept: queues of which none may be sent before others are. refused: places
    of jobs for which others wait whose queues refuse them, and why."""

    ready: dict[str, list[int]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)


def sendable(
    jobs: Sequence[Fresh], unsent: Callable[[Collection[str]], Iterable[Unsent]]
) -> Sendable:
    """Which of these jobs may be sent: of each queue those before the first one for which another
    one waits that is not in its queue. unsent: what of these ids is in the outbox."""
    waited = {job.seq: awaiting for job in jobs if (awaiting := _awaiting(job))}
    ids = {id_ for awaiting in waited.values() for _, id_ in awaiting}
    found = {(one.queue, one.id): one.refused for one in unsent(ids)} if ids else {}
    result = Sendable()
    for job in jobs:
        there = [one for one in waited.get(job.seq, ()) if one in found]
        refused = next((one for one in there if found[one]), None)
        if refused is not None:
            queue, id_ = refused
            result.refused[job.seq] = f"job '{id_}' waits for it, which queue '{queue}' refuses"
        elif there:
            result.kept.add(job.queue)
        elif job.queue not in result.kept:
            result.ready.setdefault(job.queue, []).append(job.seq)
    result.kept -= result.ready.keys()
    return result


def _awaiting(job: Fresh) -> list[tuple[str, str]]:
    """Queue and id of the jobs in other queues that wait for this one."""
    if "|t" not in job.terms:
        return []
    texts: Any = Terms.parse(job.terms).dependants
    found = map(Dependant.parse, texts)
    return [(one.queue, one.of(job.id)) for one in found if one.queue not in ("", job.queue)]
