"""The tree of a workflow: a job, and the jobs that it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rqueue.errors import UnknownJob
from rqueue.model.job import JobState
from rqueue.model.job_info import JobInfo
from rqueue.model.parents import Parents
from rqueue.text.numbers import many

__all__ = ["tree_of"]

SHOWN = 20
"""Jobs that are shown of those that one waits for: what has not ended first."""

LOOKED_AT = 200
"""Jobs that are looked at of those that one waits for."""

DEEPEST = 20

Look = Callable[[str, str], JobInfo]


def tree_of(job: JobInfo, look: Look) -> Iterator[str]:
    """Lines for the jobs that this one waits for, or waited for, each with those before it. look:
    a job by its id and its queue; raises UnknownJob."""
    return _below(job, look, "", 1)


def _below(job: JobInfo, look: Look, indent: str, depth: int) -> Iterator[str]:
    parents = Parents.parse(job.waits)
    if parents is None:
        return
    if job.joined:
        parents = parents._replace(total=job.joined)
    ids = parents.first(job.id, LOOKED_AT)
    found = [_found(parents.queues or (job.queue,), id_, look) for id_ in ids]
    found.sort(key=lambda one: one.state.ended)
    for number, one in enumerate(found[:SHOWN], 1):
        last = number == len(found[:SHOWN]) and parents.total <= SHOWN
        task, there = f"({one.task})" if one.task else "", ""
        if parents.queues and one.queue:
            there = f"in {one.queue}"
        said = " ".join(filter(None, (one.id, task, one.state, there)))
        yield f"{indent}{'└─' if last else '├─'} {said}"
        if depth < DEEPEST and not one.state.ended:
            yield from _below(one, look, indent + ("   " if last else "│  "), depth + 1)
    if parents.total > SHOWN:
        yield f"{indent}└─ and {many(parents.total - SHOWN, 'other')}"


def _found(queues: tuple[str, ...], id: str, look: Look) -> JobInfo:
    for queue in queues:
        try:
            return look(id, queue)
        except UnknownJob:
            continue
    return JobInfo(id, queues[0] if len(queues) == 1 else "", JobState.UNKNOWN)
