"""The job that a command names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rqueue.cli.exit_codes import NOT_FOUND, Failure
from rqueue.cli.failures import say
from rqueue.cli.target import client_of, keep_asking
from rqueue.model.job import JobState
from rqueue.model.parents import PARENTS_MAX
from rqueue.protocol.waiting import why_it_waits

if TYPE_CHECKING:
    from rqueue.client._sync.queue import Queue
    from rqueue.inspector import Inspector
    from rqueue.inspector.jobs import Look
    from rqueue.model.job_info import JobInfo

__all__ = ["named_job", "waiting_for"]


def named_job(inspector: Inspector, id: str, queue: str | None) -> Look:
    """As `Inspector.job`. Raises Failure for a group without a callback, which has members and no
    job of its own id: it names those."""
    from rqueue.errors import UnknownJob

    try:
        return inspector.job(id, queue)
    except UnknownJob:
        last = _last_member(inspector, id, queue)
        if last < 0:
            raise
    there = f"'{id}.0'" + (f" to '{id}.{last}'" if last else "")
    one = "it is the one member" if not last else f"they are the {last + 1} members"
    raise Failure(f"no job '{id}', but {there}: {one} of a group, name a job of it", NOT_FOUND)


@contextmanager
def waiting_for(inspector: Inspector, job: JobInfo, seconds: float | None) -> Iterator[Queue]:
    """A client that waits for a job, which takes as long as it takes, so from now on a server that
    gave no answer is asked again. seconds: the most that is waited; 0 looks only."""
    if seconds is None or seconds > 0:
        _say_what_keeps_it(inspector, job)
    keep_asking(inspector)
    with client_of(job.queue, inspector.client_of(job.queue), inspector) as client:
        yield client


def _say_what_keeps_it(inspector: Inspector, job: JobInfo) -> None:
    """Say on stderr what keeps a job from being run that a command is about to wait for: nobody
    serves its queue, or knows its task, or the queue is paused."""
    if job.state.ended or job.state is JobState.HELD:
        return
    facts = inspector.queue(job.queue)
    reason = why_it_waits(
        job.state,
        job.queue,
        paused=facts.paused,
        consumers=facts.serving,
        lapsed=facts.acquiring - facts.serving,
    )
    if reason:
        say(f"job '{job.id}' is {job.state}, and {reason}; waiting")


def _last_member(inspector: Inspector, id: str, queue: str | None) -> int:
    """The number of the last member, found in few looks; -1 where there is none."""
    there, missing = -1, 0
    while missing < PARENTS_MAX and _is_there(inspector, f"{id}.{missing}", queue):
        there, missing = missing, missing * 2 + 1
    while missing - there > 1:
        middle = (there + missing) // 2
        if _is_there(inspector, f"{id}.{middle}", queue):
            there = middle
        else:
            missing = middle
    return there


def _is_there(inspector: Inspector, id: str, queue: str | None) -> bool:
    from rqueue.errors import ConfigError, InvalidName, UnknownJob

    try:
        inspector.job(id, queue)
    except (UnknownJob, InvalidName):
        return False
    except ConfigError:  # several queues have one
        return True
    return True
