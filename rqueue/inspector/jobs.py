"""Jobs: one by its id, or a page of those in one state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import orjson
import redis

from rqueue.errors import (
    ConfigError,
    RQueueError,
    ServerError,
    Undecodable,
    UnknownJob,
    WrongServer,
)
from rqueue.inspector.cursors import check_cursor, fold, unfold
from rqueue.inspector.parked import parked_among
from rqueue.inspector.parts import Part, Parts
from rqueue.model.envelope import Record, decode_result, parse_record, unpack
from rqueue.model.expect import shown
from rqueue.model.job import Delivery, JobState
from rqueue.model.job_info import JobInfo
from rqueue.model.parents import Parents
from rqueue.model.signing import key_id_of
from rqueue.model.sort_keys import sort_key_of
from rqueue.model.steps import KeptSteps
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.clock import read_clock
from rqueue.protocol.commands.consumer_rows import registered_names
from rqueue.protocol.commands.flow_notes import gathered_of
from rqueue.protocol.commands.job_notes import Notes, began_of, notes_page
from rqueue.protocol.commands.reports import progress
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.paging import Paging, read_pages
from rqueue.protocol.result_wait import NOT_KEPT, move_said
from rqueue.transport.redis_client import execute

PAGE_MAX = commands.read.PAGE_MAX

ENDED = ("ended", "done", "cancelled", "purged", "expired", "displaced", "moved")
BROWSABLE = ("ready", "blocked", "scheduled", "parked", "deferred", "held", "dead", *ENDED)
"""The states that `jobs_page` can show."""


class Page(NamedTuple):
    """Some jobs, in order. `next` continues behind the last one, however the queue changes in
    between; "" = that was all for now. `now`: ms, Redis's clock."""

    now: int
    jobs: list[JobInfo]
    next: str


class Look(NamedTuple):
    """One job. `place`: jobs before it in its level, -1 where that means nothing."""

    now: int
    job: JobInfo
    place: int


def job_info(queue: str, state: JobState, job: Delivery, **more: Any) -> JobInfo:
    """A live job; `problem` says what could not be read."""
    facts: dict[str, Any] = {"id": job.id, "queue": queue, "state": state, **more}
    facts["size"] = len(job.value)
    try:
        header = job.header
        facts.update(
            position=header.position,
            level=header.level,
            enqueued_ms=header.enqueued_ms,
            due_ms=header.due_ms,
            deliveries=header.deliveries + (state is JobState.HELD),
            attempts=header.attempts,
            max_deliveries=header.max_deliveries,
            crashes=header.crashes,
            max_crashes=header.max_crashes,
            expires_ms=header.expires_ms,
            group=header.group,
            key=header.key,
            sort_key=sort_key_of(header.sort),
            unique=header.unique,
            waits=header.waits,
            counts=header.counts,
            limits=header.limits,
            share=header.share,
            size=len(job.body),
        )
        facts["signed_with"] = key_id_of(job.body)
        facts["refused_by"] = _refusers_of(job.value)
        facts["steps"] = KeptSteps.of(job.value).shown()
        task, args, kwargs, opts = unpack(job.body)
        facts.update(task=task, args=args, kwargs=kwargs, opts=opts)
    except RQueueError as error:
        facts["problem"] = str(error)
    return JobInfo(**facts)


def _refusers_of(value: bytes) -> tuple[str, ...]:
    """The terms of the consumers that have refused a stored job."""
    for tag in value.partition(b";")[0].split(b"|")[1:]:
        if tag[:1] == b"r" and tag[1:]:
            return tuple(tag[1:].decode("ascii", "replace").split("."))
    return ()


def ended_info(queue: str, id: str, record: Record) -> JobInfo:
    """A job of which only its record is left."""
    facts: dict[str, Any] = {"ended_ms": record.ended_ms}
    if record.state is JobState.DONE:
        if record.payload == NOT_KEPT:
            facts["problem"] = "its result was not kept"
        else:
            try:
                facts["result"] = decode_result(record.payload)
            except Undecodable as error:
                facts["problem"] = str(error)
    elif record.state in (JobState.DEAD, JobState.CANCELLED):
        facts["cause"] = read_json(record.payload)
    elif record.state is JobState.MOVED:
        merged = move_said(record, "as")
        to = move_said(record, "to")
        facts["problem"] = f"merged into job '{merged}'" if merged else f"moved to queue '{to}'"
    return JobInfo(id, queue, record.state, **facts)


def read_json(text: bytes) -> dict[str, Any] | None:
    """A JSON object that a worker or a script wrote; None when there is none.

    What is no JSON object is shown as a message: people shall see what is there.
    """
    if not text:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text.decode(errors="replace")
    return value if isinstance(value, dict) else {"message": str(value)}


def look_at_job(client: redis.Redis, keys: QueueKeys, id: str) -> Look:
    """One job, wherever it is. Raises UnknownJob."""
    shown = execute(client, commands.show(keys, id), queue=keys.queue)
    if shown.state == "unknown":
        raise UnknownJob(id, queue=keys.queue)
    if shown.state == "ended":
        return Look(shown.now, ended_info(keys.queue, id, parse_record(shown.record)), -1)
    errors = [read_json(line) or {} for line in shown.errors.splitlines()]
    state = JobState(shown.state)
    if state is JobState.SCHEDULED and shown.cause:
        state = JobState.PARKED
    info = job_info(
        keys.queue,
        state,
        Delivery(id, shown.value),
        holder=shown.holder,
        errors=errors,
        cause=read_json(shown.cause),
        ended_ms=parse_record(shown.record).ended_ms if shown.record else 0,
    )
    if info.deliveries:
        info = replace(info, progress=execute(client, progress(keys, id)))
    if state is JobState.DEFERRED and (parents := Parents.parse(info.waits)) and parents.open:
        info = replace(info, joined=execute(client, gathered_of(keys, id)).total or 0)
    return Look(shown.now, info, shown.place)


def find_job(
    parts: Parts, id: str, unknown: UnknownJob
) -> tuple[Look | None, dict[str, ServerError]]:
    """One job in whichever of these queues has it, None where none has; and those that could not be
    asked. Raises ConfigError where several have a job of this id: which one is meant only the
    caller knows.

    A queue that another version of rqueue wrote cannot be searched; the notes of `unknown` name it.
    """

    def look(part: Part) -> Look | None:
        try:
            return look_at_job(part.client, part.keys, id)
        except UnknownJob:
            return None
        except WrongServer as error:
            if len(parts.found) == 1:
                raise
            unknown.add_note(f"queue '{part.name}' was not searched: {error.message}")
            return None

    answers, missing = parts.each(look)
    found = [one for one in answers.values() if one is not None]
    # one that was moved is where it went
    found = [one for one in found if one.job.state is not JobState.MOVED] or found[:1]
    if len(found) > 1:
        where = ", ".join(f"'{one.job.queue}' ({one.job.state})" for one in found)
        raise ConfigError("queue", f"several have a job '{id}', name one: {where}")
    return (found[0] if found else None), missing


# -- pages -----------------------------------------------------------------------------------------


def jobs_page(
    client: redis.Redis, keys: QueueKeys, state: str = "ready", after: str = "", limit: int = 100
) -> Page:
    """A page of the jobs in one state (one of `BROWSABLE`), `limit` at the most (1 to 500; pages of
    ended jobs may be somewhat longer).

    ready: as they will be delivered, highest level first; the cursor is a position, so nothing is
    shown twice or left out while jobs are consumed. blocked: those behind others of their groups,
    group by group. scheduled: by due time, without the parked ones. parked: those that wait for a
    worker that knows their task. deferred: those that wait for other jobs. held: by consumer. dead:
    by time of death. ended (done, cancelled, purged, expired, displaced, moved): in no order, while
    their records last. Raises ConfigError.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise ConfigError("limit", f"{limit} is not from 1 to {PAGE_MAX}")
    if after:
        check_cursor(state, after)
    if state in ("ready", "blocked"):
        return _waiting_page(client, keys, state, after, limit)
    if state in ("scheduled", "dead"):
        return _set_page(client, keys, state, after, limit)
    if state == "held":
        return _held_page(client, keys, after, limit)
    if state == "parked":
        return _noted_page(client, keys, "parked", after, limit)
    if state == "deferred":
        return _noted_page(client, keys, "deferred", after, limit)
    if state in BROWSABLE:
        return _ended_page(client, keys, state, after, limit)
    raise ConfigError("state", f"{state!r} is not one of {', '.join(BROWSABLE)}")


def all_jobs(client: redis.Redis, keys: QueueKeys, state: str) -> Iterator[JobInfo]:
    """All jobs in one state, page by page."""
    after = ""
    while True:
        page = jobs_page(client, keys, state, after, PAGE_MAX)
        yield from page.jobs
        after = page.next
        if not after:
            return


def page_of_shards(parts: Parts, state: str, after: str, limit: int) -> Page:
    """`jobs_page` of a queue that is spread, shard after shard: the cursor says in which one the
    page ended, "3~" and the cursor there. Raises ConfigError, and ConnectionLost where a shard
    cannot be asked."""
    shards = {part.shard.number: part for part in parts if part.shard is not None}
    at, tilde, rest = after.partition("~")
    if after and not (tilde and at.isdecimal() and int(at) in shards):
        raise ConfigError("after", f"{shown(after)} is no cursor of this queue")
    jobs: list[JobInfo] = []
    now = 0
    for number, part in shards.items():
        if after and number < int(at):
            continue
        if len(jobs) >= limit:
            return Page(now, jobs, f"{number}~")
        with parts.named(part):
            page = jobs_page(part.client, part.keys, state, rest, limit - len(jobs))
        rest = ""
        jobs, now = jobs + page.jobs, max(now, page.now)
        if page.next:
            return Page(now, jobs, f"{number}~{page.next}")
    return Page(now, jobs, "")


def _waiting_page(client: redis.Redis, keys: QueueKeys, state: str, after: str, limit: int) -> Page:
    """Ready jobs, or those that wait behind others of their groups."""
    blocked = state == "blocked"
    jobs: list[JobInfo] = []

    def browse(place: str) -> ScriptCall[commands.read.Page]:
        return commands.browse(keys, place, limit - len(jobs))

    paging = Paging(browse, after or ("only," if blocked else ""))
    for page in read_pages(paging, partial(execute, client, queue=keys.queue)):
        ready = len(page.jobs) - page.blocked
        found = page.jobs[ready:] if blocked else page.jobs[:ready]
        jobs += [job_info(keys.queue, JobState(state), job) for job in found]
        if len(jobs) == limit or (page.blocked and not blocked):
            break
    return Page(page.now, jobs, paging.cursor if len(jobs) == limit else "")


def _set_page(client: redis.Redis, keys: QueueKeys, state: str, after: str, limit: int) -> Page:
    jobs: list[JobInfo] = []

    def browse(place: tuple[str, str]) -> ScriptCall[commands.read.EntryPage]:
        return commands.browse_set(keys, state, place, limit - len(jobs))

    score, member = unfold(after, 2) if after else ("-inf", "")
    paging = Paging(browse, (score, member))
    for page in read_pages(paging, partial(execute, client, queue=keys.queue)):
        ids = [entry.job.id for entry in page.entries] if state == "scheduled" else []
        parked = parked_among(client, keys, ids)
        for entry in page.entries:
            if entry.job.id in parked:  # these have a state, and a listing, of their own
                continue
            more: dict[str, Any] = {}
            if state == "dead":
                more = {"ended_ms": int(entry.score), "cause": read_json(entry.cause)}
            info = job_info(keys.queue, JobState(state), entry.job, **more)
            if state == "scheduled":
                # a parked job keeps the due time it had; what counts here is when it comes back
                object.__setattr__(info, "due_ms", int(entry.score))
            jobs.append(info)
        if len(jobs) == limit:
            break
    return Page(page.now, jobs, fold(*paging.cursor) if len(jobs) == limit else "")


def _held_page(client: redis.Redis, keys: QueueKeys, after: str, limit: int) -> Page:
    """Consumers by name, the jobs of each in order; the cursor names where the page ended."""
    at, score, member = unfold(after, 3) if after else ("", "-inf", "")
    names = sorted(execute(client, registered_names(keys)))
    jobs: list[JobInfo] = []
    now = 0
    for name in names:
        if name < at:
            continue
        start = (score, member) if name == at else ("-inf", "")
        while True:
            call = commands.browse_set(keys, f"held:{name}", start, limit - len(jobs))
            page = execute(client, call, queue=keys.queue)
            now, start = page.now, page.cursor
            ids = [entry.job.id for entry in page.entries]
            began = execute(client, began_of(keys, name, ids))
            for entry, began_ms in zip(page.entries, began, strict=True):
                info = job_info(keys.queue, JobState.HELD, entry.job, holder=name)
                jobs.append(replace(info, began_ms=began_ms))
            if len(jobs) >= limit:
                return Page(now, jobs, fold(name, *start))
            if not page.more:
                break
    return Page(now, jobs, "")


def _noted_page(
    client: redis.Redis,
    keys: QueueKeys,
    state: Literal["parked", "deferred"],
    after: str,
    limit: int,
) -> Page:
    def read(notes: dict[str, bytes]) -> list[JobInfo]:
        looks = [_look_or_none(client, keys, id_) for id_ in notes]
        return [look.job for look in looks if look and look.job.state == state]

    return _notes_page(client, keys, [state], after, limit, read)


def _ended_page(client: redis.Redis, keys: QueueKeys, state: str, after: str, limit: int) -> Page:
    def read(notes: dict[str, bytes]) -> list[JobInfo]:
        found = []
        for id_, raw in notes.items():
            try:
                info = ended_info(keys.queue, id_, parse_record(raw))
            except Undecodable as error:
                info = JobInfo(id_, keys.queue, JobState.UNKNOWN, problem=str(error))
            # dead letters have a state, and a listing, of their own
            if info.state == state or (state == "ended" and info.state is not JobState.DEAD):
                found.append(info)
        return found

    return _notes_page(client, keys, ["ended", "ended_old"], after, limit, read)


def _notes_page(
    client: redis.Redis,
    keys: QueueKeys,
    kinds: Sequence[Notes],
    after: str,
    limit: int,
    read: Callable[[dict[str, bytes]], list[JobInfo]],
) -> Page:
    """Jobs that there are notes of: what is there from the beginning to the end is shown."""
    number, cursor = (int(part) for part in unfold(after, 2)) if after else (0, 0)
    jobs: list[JobInfo] = []
    now = execute(client, read_clock(keys)).now
    while number < len(kinds):
        page = execute(client, notes_page(keys, kinds[number], cursor, count=limit))
        jobs += read(page.notes)
        cursor = page.cursor
        if not cursor:
            number += 1
        if len(jobs) >= limit:
            break
    return Page(now, jobs, fold(str(number), str(cursor)) if number < len(kinds) else "")


def _look_or_none(client: redis.Redis, keys: QueueKeys, id: str) -> Look | None:
    try:
        return look_at_job(client, keys, id)
    except UnknownJob:
        return None
