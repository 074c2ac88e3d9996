"""Dead letters: found by what killed them, given another life, or dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import redis

from rqueue.errors import UnknownJob
from rqueue.inspector.jobs import job_info, look_at_job, read_json
from rqueue.inspector.parts import Part, Parts
from rqueue.model.job import JobState, enqueued_by
from rqueue.model.job_info import JobInfo
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import SLICE
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.paging import entries, read_pages
from rqueue.transport.redis_client import execute

Progress = Callable[[int, int], None]
"""Called after each step: with how many dead letters were looked at, and how many were done."""


@dataclass(frozen=True, slots=True)
class DeadFilter:
    """Which dead letters; what is left empty says nothing.

    task: its name. error: part of the error's type or kind (`ValueError`, `crash`), letter case
    aside. text: part of its message or traceback, letter case aside. since_ms, until_ms: died at or
    after, before (ms since the epoch). ids: only these jobs, which are looked up one by one.
    """

    task: str = ""
    error: str = ""
    text: str = ""
    since_ms: int = 0
    until_ms: int = 0
    ids: tuple[str, ...] = ()

    def fits(self, job: JobInfo) -> bool:
        """Whether this dead letter is one of them."""
        if self.ids and job.id not in self.ids:
            return False
        if self.task and job.task != self.task:
            return False
        cause = job.cause or {}
        if self.error:
            wanted = self.error.casefold()
            kinds = (str(cause.get("type", "")), str(cause.get("kind", "")))
            if not any(wanted in kind.casefold() for kind in kinds):
                return False
        if self.text:
            said = f"{cause.get('message', '')}\n{cause.get('traceback', '')}"
            if self.text.casefold() not in said.casefold():
                return False
        return (not self.since_ms or job.ended_ms >= self.since_ms) and (
            not self.until_ms or job.ended_ms < self.until_ms
        )


ANY = DeadFilter()


def dead_letters(
    client: redis.Redis,
    keys: QueueKeys,
    which: DeadFilter = ANY,
    progress: Progress | None = None,
    last: int | None = None,
) -> Iterator[JobInfo]:
    """The dead letters that fit, oldest first, read page by page; of ids, as they were given. last:
    the greatest position that they may have."""
    if which.ids:
        yield from _by_id(client, keys, which)
        return
    begin = (str(which.since_ms), "") if which.since_ms else ("-inf", "")
    run = partial(execute, client, queue=keys.queue)
    looked = fitting = 0
    for page in read_pages(entries(keys, "dead", begin), run):
        for entry in page.entries:
            if which.until_ms and entry.score >= which.until_ms:
                return
            job = job_info(
                keys.queue,
                JobState.DEAD,
                entry.job,
                ended_ms=int(entry.score),
                cause=read_json(entry.cause),
            )
            looked += 1
            if which.fits(job) and enqueued_by(entry.job, last):
                fitting += 1
                yield job
        if progress is not None:
            progress(looked, fitting)


def _by_id(client: redis.Redis, keys: QueueKeys, which: DeadFilter) -> Iterator[JobInfo]:
    for id_ in dict.fromkeys(which.ids):
        try:
            job = look_at_job(client, keys, id_).job
        except UnknownJob:
            continue
        if job.state is JobState.DEAD and which.fits(job):
            yield job


def requeue_dead(
    client: redis.Redis,
    keys: QueueKeys,
    which: DeadFilter = ANY,
    progress: Progress | None = None,
) -> int:
    """Give the dead letters that fit another life at the tail of their levels; returns how many."""
    return _each_slice(client, keys, which, commands.requeue, progress)


def purge_dead(
    client: redis.Redis,
    keys: QueueKeys,
    which: DeadFilter = ANY,
    progress: Progress | None = None,
) -> int:
    """Drop the dead letters that fit for good; returns how many."""
    return _each_slice(client, keys, which, commands.purge_dead, progress)


def in_all(
    work: Callable[[redis.Redis, QueueKeys, DeadFilter, Progress | None], int],
    parts: Parts,
    which: DeadFilter,
    progress: Progress | None,
) -> int:
    """Do it in all queues that a name stands for; returns how many."""
    looked = done = 0

    def one(part: Part) -> None:
        nonlocal looked, done
        looked_before, done_before, here = looked, done, 0

        def so_far(more: int, finished: int) -> None:
            nonlocal here
            here = more
            if progress is not None:
                progress(looked_before + more, done_before + finished)

        done += work(part.client, part.keys, which, so_far)
        looked += here

    parts.all(one)
    return done


def _each_slice(
    client: redis.Redis,
    keys: QueueKeys,
    which: DeadFilter,
    make: Callable[[QueueKeys, list[str]], commands.ScriptCall[int]],
    progress: Progress | None,
) -> int:
    done = looked = 0
    ids: list[str] = []

    def seen(count: int, _fitting: int) -> None:
        nonlocal looked
        looked = count

    def flush() -> None:
        nonlocal done
        done += execute(client, make(keys, ids), queue=keys.queue)
        ids.clear()
        if progress is not None:
            progress(looked, done)

    # A requeued job gets a new position. If it dies again at once, that one is behind the last
    # position of now, and the job is left alone.
    start = execute(client, commands.counts(keys, oldest=False), queue=keys.queue)
    for job in dead_letters(client, keys, which, seen, start.last_position):
        ids.append(job.id)
        if len(ids) == SLICE:
            flush()
    if ids:
        flush()
    elif progress is not None:
        progress(looked, done)
    return done
