"""Cancelling jobs by id, and all that their workflows wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import NamedTuple, Protocol

from redis import Redis

from rqueue.client._sync.queue import Queue
from rqueue.inspector import workflows
from rqueue.model.cancellation import Cancellation
from rqueue.model.job import JobState
from rqueue.model.job_info import JobInfo
from rqueue.model.parents import Parents
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import CANCELLED_FROM
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

__all__ = ["CancelAnswer", "cancel_jobs", "with_workflows"]


class Clients(Protocol):
    """What is needed of an Inspector."""

    redis: Redis

    def keys(self, queue: str) -> QueueKeys:
        """The keys of a queue."""

    def client_of(self, queue: str) -> Redis:
        """The client of the server that has a queue."""


class CancelAnswer(NamedTuple):
    """What became of the cancel of a job. was: the state that it ended from (ready, blocked,
    scheduled, deferred, held); how far its code is, if that was to be stopped (requested,
    delivered, stopped); or why it was not cancelled (holds: a worker has it, and such jobs were to
    be left alone; dead, ended)."""

    id: str
    queue: str
    was: str

    @property
    def cancelled(self) -> bool:
        """True if the job ends by this cancel, whatever its code still does."""
        return self.was in CANCELLED_FROM | {"requested", "delivered", "stopped"}


def with_workflows(inspector: Clients, jobs: Sequence[JobInfo]) -> list[JobInfo]:
    """These jobs, and those that they wait for: the ones that wait come first."""
    below = [
        replace(job, id=id_, queue=queue)
        for job in jobs
        for queue, id_ in workflows.waited_for(inspector.redis, inspector.keys(job.queue), job.id)
    ]
    return [*jobs, *below]


def cancel_jobs(
    inspector: Clients,
    jobs: Sequence[JobInfo],
    streams: Sequence[JobInfo],
    *,
    held: bool,
    running: bool,
    kill: bool,
    timeout: float,
) -> list[CancelAnswer]:
    """Cancel jobs in their order, then the members that have come meanwhile to those of `streams`.
    All are asked before the end of the first one is waited for."""
    until = monotonic() + timeout

    def cancel(job: JobInfo) -> str:
        if running or kill:
            return _stop(inspector, job, kill=kill, timeout=0.0)
        call = commands.cancel(inspector.keys(job.queue), job.id, held=held)
        return execute(inspector.client_of(job.queue), call, queue=job.queue)

    asked = [(job, cancel(job)) for job in jobs]
    late = [one for job in streams for one in _joined_since(inspector, job)]
    asked += [(job, cancel(job)) for job in late]
    answers = []
    for job, was in asked:
        if (running or kill) and was in ("requested", "delivered"):
            was = _stop(inspector, job, kill=kill, timeout=max(0.0, until - monotonic()))
        answers.append(CancelAnswer(job.id, job.queue, was))
    return answers


def _joined_since(inspector: Clients, job: JobInfo) -> Iterator[JobInfo]:
    """The members that have come to a stream since this was read; the job that waited for them is
    cancelled, so no others come."""
    parents = Parents.parse(job.waits)
    if job.state is JobState.DEFERRED and parents is not None and parents.open:
        client, keys = inspector.client_of(job.queue), inspector.keys(job.queue)
        for id_ in workflows.joined_since(client, keys, job.id, job.joined):
            yield replace(job, id=id_)


def _stop(inspector: Clients, job: JobInfo, *, kill: bool, timeout: float) -> str:
    namespace = inspector.keys(job.queue).namespace
    with Queue(job.queue, redis=inspector.client_of(job.queue), namespace=namespace) as queue:
        end = queue.cancel(job.id, running=not kill, kill=kill, timeout=timeout)
    if end is Cancellation.NONE:
        return "dead" if job.state is JobState.DEAD else "ended"
    return "stopped" if end is Cancellation.ENDED else str(end)
