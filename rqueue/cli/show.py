"""`rqueue show`: one job."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import orjson

from rqueue.cli.filled import filled
from rqueue.cli.named_job import named_job
from rqueue.cli.output import age, echo, iso, json_option, print_facts, print_json, size, span
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.cli.tree import tree_of
from rqueue.cli.unique import unique_words
from rqueue.model.causes import EXPIRED, GAVE_UP, why_dead
from rqueue.model.job import JobState
from rqueue.model.job_info import JobInfo
from rqueue.model.job_limit import JobLimit
from rqueue.model.parents import Parents
from rqueue.model.progress import Progress
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol.waiting import why_it_waits
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.inspector import Inspector
    from rqueue.protocol.commands.admin import Stopping
    from rqueue.protocol.commands.limit_notes import LimitUse
    from rqueue.protocol.commands.share_notes import ShareTurn

NO_ATTEMPT = {"Rejected": "rejected by hand", "JobExpired": "expired"}
"""What ended a job without an attempt, by the type in its cause."""

ROWS = 1000
"""The rows of the history among which the reason of a job that was put off is looked for."""

DEATHS = {
    "exhausted": "its attempts are exhausted",
    GAVE_UP: "given up, although attempts were left",
    EXPIRED: "its time to live ended before it was delivered",
}


@click.command()
@click.argument("id")
@click.option(
    "--queue", "-q", type=filled, metavar="QUEUE", help="Its queue; without it all are searched."
)
@json_option
@connection_options
@pass_target
def show(target: Target, /, id: str, queue: str | None, as_json: bool) -> None:
    """Show all that is known of one job.

    Where it is (how many jobs stand before it, whether its queue is paused, or served by no
    worker), what it will run, how often it was handed out,
    the error of each attempt with its traceback, and, while its record lasts, how it ended.

    \b
    Examples:
      rqueue show Vbh2Z7Gd4nnVLs
      rqueue show order-42 -q default --json
    """  # noqa: D301
    from rqueue.inspector.doctor.members import member_at
    from rqueue.inspector.unheard import why_unheard
    from rqueue.protocol import commands
    from rqueue.protocol.commands.limit_notes import limit_use
    from rqueue.protocol.result_wait import await_result
    from rqueue.transport.redis_client import execute

    with target.inspector() as inspector:
        look = named_job(inspector, id, queue)
        below = list(tree_of(look.job, lambda parent, where: inspector.job(parent, where).job))
        facts = inspector.queue(look.job.queue)
        consumers = inspector.consumers(look.job.queue) if facts.unheard else []
        server = inspector.client_of(look.job.queue)
        began_ms, owner = 0, ""
        if said := UniqueKey.parse(look.job.unique):
            asked = commands.key_owner(inspector.keys(look.job.queue), said.key)
            owner = execute(server, asked, queue=look.job.queue)
        limits = [JobLimit.parse(text) for text in look.job.limits]
        used = []
        if look.job.state is JobState.BLOCKED:
            asked_of = limit_use(
                inspector.keys(look.job.queue),
                [one.field for one in limits],
                member_at(look.job.level, look.job.position, id),
            )
            used = execute(server, asked_of, queue=look.job.queue)
        stopping = None
        if look.job.state is JobState.CANCELLED:
            asked_stop = commands.read_stop(inspector.keys(look.job.queue), id)
            stopping = execute(server, asked_stop, queue=look.job.queue)
        if look.job.state is JobState.HELD:
            call = await_result(inspector.keys(look.job.queue), id, wait=False)
            began_ms = execute(server, call, queue=look.job.queue).began_ms
        put_off = _put_off(inspector, look.job)
    part = None
    if look.job.share and look.job.state is JobState.READY:
        part = _part(target, look.job)
    reason = why_it_waits(
        look.job.state,
        look.job.queue,
        paused=facts.paused,
        consumers=facts.serving,
        lapsed=facts.acquiring - facts.serving,
        due_in_ms=look.job.due_ms - look.now,
        unheard=why_unheard(look.job, facts, consumers),
        limits=full_limits(limits, used),
    )
    if stopping is not None:
        reason = _runs_on(stopping)
    if as_json:
        from rqueue.cli.documents import job_document

        document = job_document(look.job, details=True)
        document |= {"before": max(look.place, 0), "reason": reason or None}
        if look.job.unique:
            document["unique_owner"] = owner or None
        if part:
            document["turn"] = part._asdict()
        if limits:
            document["limits"] = [one._asdict() for one in limits]
        if look.job.state is JobState.HELD:
            document["began"] = iso(began_ms)
        if put_off:
            document["put_off"] = put_off
        print_json(document)
        return
    print_job(look.job, look.place, look.now, reason, began_ms, owner, part, put_off)
    if below:
        echo()
        echo("waits for" if look.job.state is JobState.DEFERRED else "waited for", bold=True)
        for line in below:
            echo(f"  {line}")


def _put_off(inspector: Inspector, job: JobInfo) -> str:
    """The reason that a waiting job gave when it ran last, if that was not long ago; "" if there is
    none, or it was not put off."""
    if job.state not in (JobState.READY, JobState.SCHEDULED) or job.deliveries <= job.attempts:
        return ""
    rows, _ = inspector.last_rows(job.queue, ROWS)
    last = next((row for row in reversed(rows) if row["id"] == job.id), None)
    return str(last["error"]) if last and last["outcome"] in ("snooze", "refuse") else ""


def _runs_on(found: Stopping) -> str:
    """What is known of the code of a cancelled job that was to be stopped so long ago; "" if it
    has ended, or nobody asked for that."""
    if found.stage in ("", "ended"):
        return ""
    was = "was interrupted" if found.stage == "delivered" else "is to be stopped"
    if found.kill:
        was += ", its process to be killed"
    if found.gone:
        return f"its code {was}; its worker's lease has ended, and it may run still"
    return f"its code {was}; cancelled {span(found.now - found.at_ms)} ago, still runs"


def limits_words(texts: Sequence[str]) -> list[str]:
    """The limits that a job names, and how many jobs it says that each allows."""
    limits = map(JobLimit.parse, texts)
    return [f"{one.allows} of {one.words.removeprefix('limit ')}" for one in limits]


def full_limits(limits: Sequence[JobLimit], used: Sequence[LimitUse]) -> list[str]:
    """Of a job's limits, in words, the one that it waits for, and others of which no permit is
    free."""
    said = []
    for own, use in zip(limits, used, strict=False):
        limit = own.allowing(use.allows) if use.allows else own
        if not limit.per_ms:
            if use.waits or use.out >= limit.most:
                said.append(f"{limit.words}: {use.out} of {limit.most} in flight")
        elif use.waits:
            said.append(f"{limit.words} {_until(limit, use)}: {limit.allows}")
    return said


def _until(limit: JobLimit, use: LimitUse) -> str:
    """Until when a job waits for a rate, as far as the clock says that."""
    if not use.next_ms:
        taken = f"until jobs are taken that have {use.out} of its tokens"
        return taken if limit.most else "that lets none through"
    due = iso(use.next_ms + use.before * limit.every_ms)
    return f"until {due}" if not use.before else f"until about {due}, behind {use.before} others"


def _part(target: Target, job: JobInfo) -> ShareTurn:
    from rqueue.protocol.commands.share_notes import share_turn
    from rqueue.transport.redis_client import execute

    with target.inspector() as inspector:
        call = share_turn(inspector.keys(job.queue), job.level, job.share)
        return execute(inspector.redis, call, queue=job.queue)


def print_job(
    job: JobInfo,
    place: int,
    now: int,
    reason: str = "",
    began_ms: int = 0,
    owner: str = "",
    turn: ShareTurn | None = None,
    put_off: str = "",
) -> None:
    """A job for people. `reason`: why it waits, where that is not its turn alone. `began_ms`: since
    when it runs, of one that is held and has begun. `owner`: the job that has its unique key.
    `turn`: of a ready job of a share, how that takes turns. `put_off`: the reason that it gave for
    its `Snooze` or `Refuse`."""
    live = not job.ended_ms or job.state is JobState.DEAD

    def when(ms: int) -> str:
        return f"{iso(ms)} ({age(ms, now)}{' ago' if ms <= now else ''})" if ms else ""

    state = str(job.state)
    if job.state is JobState.READY and turn:
        state += f", {place} before it in its share" if place else ", next in its share"
        state += f", one of {many(turn.waiting, 'share')} that take turns"
    elif job.state is JobState.READY:
        state += f", {place} before it in its level" if place else ", next in its level"
    elif job.state is JobState.DEFERRED:
        state += f", waits for {many(place, 'job')}"
        if (parents := Parents.parse(job.waits)) and parents.open:
            state += f"; open, {job.joined:,} so far"
    elif job.state is JobState.DEAD:
        state += f": {how_it_died(job)}".rstrip(": ")
    elif job.state is JobState.CANCELLED and job.cause:
        state += f": {job.cause.get('message', '')}".rstrip(": ")
    elif job.holder:
        state += f" by {job.holder}"
    if reason:
        state += f": {reason}"
    print_facts(
        {
            "id": job.id,
            "queue": job.queue,
            "state": state,
            "parked": (job.cause or {}).get("message") if job.state is JobState.PARKED else "",
            "put off": put_off,
            "task": job.task,
            "arguments": _json(job.args) if job.args else "",
            "keywords": _json(job.kwargs) if job.kwargs else "",
            "options": _json(job.opts) if job.opts else "",
            "problem": job.problem,
            "level": job.level if live and job.enqueued_ms else "",
            "sort key": "" if job.sort_key is None else job.sort_key,
            "position": job.position or "",
            "enqueued": when(job.enqueued_ms),
            "due": when(job.due_ms),
            "expires": when(job.expires_ms),
            "runs since": when(began_ms),
            "ended": when(job.ended_ms),
            "deliveries": f"{job.deliveries}, of which {job.attempts} failed"
            if job.deliveries
            else "",
            "crashes": job.crashes or "",
            "unique": _unique(job, owner),
            "progress": _progress(job.progress, now),
            "steps": _json(job.steps) if job.steps else "",
            "share": f"{job.share}, weight {turn.weight}" if turn else job.share,
            "limits": ", ".join(limits_words(job.limits)),
            "limit": ", ".join(
                many(most, *words)
                for most, *words in (
                    (job.max_deliveries, "attempt"),
                    (job.max_crashes, "crash", "crashes"),
                )
                if most
            ),
            "size": size(job.size) if job.size else "",
            "signed with": job.signed_with,
            "next": _next_step(job),
            "result": _json(job.result) if job.state is JobState.DONE else "",
        }
    )
    errors = job.errors or ([job.cause] if job.cause and job.state is JobState.DEAD else [])
    number = 0
    for error in errors:
        echo()
        if error.get("kind") == "suspected":
            head = "suspected of a crash, not charged"
        elif said := NO_ATTEMPT.get(str(error.get("type"))):
            head = said
        else:
            number += 1
            head = f"error of attempt {error.get('attempt') or number}"
        head += f", {span(now - error['at'])} ago" if error.get("at") else ""
        echo(head, bold=True)
        for line in describe_error(error).splitlines():
            echo(f"  {line}")


def _next_step(job: JobInfo) -> str:
    """The commands that a job waits for, or that tell more of it; "" where there are none."""
    if job.ended_ms and not job.position:
        which = shlex.join([job.queue, "--id", job.id])
        return f"rqueue history {which} tells what it ran, and how"
    if job.state is not JobState.DEAD:
        return ""
    which = shlex.join([job.queue, job.id])
    return f"rqueue dead requeue {which}, or rqueue dead purge {which}"


def _progress(progress: Progress | None, now: int) -> str:
    """How far a job is, by its own report; "" without one."""
    if progress is None:
        return ""
    return f"{progress}, said {age(progress.at_ms, now)} ago in delivery {progress.delivery}"


def _unique(job: JobInfo, owner: str) -> str:
    """The unique key of a job, as far as it has it; "" without one."""
    words = unique_words(job.unique)
    if not words or owner == job.id:
        return words
    key = words.partition(",")[0]
    return f"{key} is that of job {owner} now" if owner else f"{key} is free: no job has it now"


def how_it_died(job: JobInfo) -> str:
    """Why a job is dead, in a few words; "" where that is not known."""
    cause = job.cause or {}
    if died_of_crashes(job):
        crashes = many(int(cause["crash"]), "worker process", "worker processes")
        return f"it cost {crashes}, all that max_crashes allows"
    if (said := NO_ATTEMPT.get(str(cause.get("type")))) and cause.get("kind") != EXPIRED:
        return said
    return DEATHS.get(why_dead(cause), "")


def died_of_crashes(job: JobInfo) -> bool:
    """Whether it was the limit of crashes that a job reached, and not that of its attempts."""
    cause = job.cause or {}
    spent = job.max_deliveries and cause.get("attempt", 0) >= job.max_deliveries
    crashed = cause.get("kind") == "crash" and cause.get("crash")
    return bool(crashed) and not spent and why_dead(cause) != GAVE_UP


def describe_error(error: dict[str, Any]) -> str:
    """An attempt's error: its traceback where there is one."""
    text = str(error.get("traceback") or "").rstrip("\n")
    if not text:
        kind = error.get("type") or error.get("kind") or "error"
        text = f"{kind}: {error.get('message', '')}".rstrip(": ")
    if error.get("worker"):
        text += f"\nin worker {error['worker']}"
    return text


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
