"""`rqueue jobs`: a queue's jobs in one state."""

from __future__ import annotations

from collections.abc import Sequence

import click
import orjson

from rqueue.cli.output import (
    Column,
    age,
    echo,
    json_option,
    print_json,
    print_line,
    print_table,
    shorten,
    size,
    span,
)
from rqueue.cli.show import died_of_crashes
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.causes import why_dead
from rqueue.model.job_info import JobInfo
from rqueue.model.parents import Parents

ENDED = ("ended", "done", "cancelled", "purged", "expired", "displaced", "moved")
STATES = ("ready", "blocked", "scheduled", "parked", "deferred", "held", "dead", *ENDED)


@click.command()
@click.argument("queue")
@click.option(
    "--state",
    "-s",
    type=click.Choice(STATES),
    default="ready",
    show_default=True,
    help="Which jobs. 'ended' is done, cancelled, purged, expired, displaced or moved.",
)
@click.option("--limit", "-n", default=50, show_default=True, metavar="N", help="Jobs per page.")
@click.option("--after", default="", metavar="CURSOR", help="Go on where the last page ended.")
@click.option("--all", "every", is_flag=True, help="All pages; with --json one line per job.")
@json_option
@connection_options
@pass_target
def jobs(
    target: Target, /, queue: str, state: str, limit: int, after: str, every: bool, as_json: bool
) -> None:
    """List a queue's jobs in one state.

    Ready jobs are listed in the order in which they will be handed out, with their position. The
    next page is asked for with the cursor that ends this one (in JSON: "next"). It is the place in
    the queue, not a count: while workers take jobs away, no job is shown twice and none is left
    out.

    \b
    Examples:
      rqueue jobs default
      rqueue jobs default --state held
      rqueue jobs default --limit 100 --after 4r1234
      rqueue jobs default --state dead --all --json | jq .cause.type
    """  # noqa: D301
    from rqueue.cli.documents import job_document

    with target.inspector() as inspector:
        if every and as_json:
            for job in inspector.all_jobs(queue, state):
                print_line(job_document(job))
            return
        empty = f"no {state} jobs in queue '{queue}'"
        while True:
            page = inspector.jobs(queue, state, after, limit)
            if as_json:
                print_json(
                    {"jobs": [job_document(job) for job in page.jobs], "next": page.next or None}
                )
                return
            if page.jobs or empty:
                print_jobs(page.jobs, state, page.now, empty=empty)
            after, empty = page.next, ""
            if not after:
                return
            if not every:
                echo(f"more: --after {after}", err=True)
                return


def print_jobs(found: Sequence[JobInfo], state: str, now: int, *, empty: str = "") -> None:
    """A table of jobs, with the columns that their state makes interesting."""
    if state in ENDED:
        columns = [Column("id"), Column("state"), Column("ended", right=True), Column("result")]
        rows: list[tuple[object, ...]] = [
            (job.id, str(job.state), age(job.ended_ms, now), job.problem or _result(job))
            for job in found
        ]
        print_table(columns, rows, empty=empty)
        return
    columns = [Column("position", right=True)] if state == "ready" else []
    columns += [Column("id"), Column("task"), Column("level", right=True)]
    columns += [Column("enqueued", right=True), Column("deliveries", right=True)]
    columns += [Column("failed", right=True)]
    columns += {
        "ready": [Column("size", right=True), Column("arguments")],
        "blocked": [Column("group"), Column("arguments")],
        "scheduled": [Column("due", right=True), Column("arguments")],
        "parked": [Column("again", right=True), Column("arguments")],
        "deferred": [Column("waits for", right=True), Column("arguments")],
        "held": [Column("runs for", right=True), Column("consumer"), Column("arguments")],
        "dead": [Column("died", right=True), Column("error")],
    }[state]
    rows = []
    for job in found:
        row: list[object] = [job.position] if state == "ready" else []
        row += [job.id, job.task or f"({job.problem})", job.level]
        row += [age(job.enqueued_ms, now), job.deliveries, job.attempts]
        if state == "ready":
            row += [size(job.size), arguments(job)]
        elif state == "blocked":
            row += [job.group, arguments(job)]
        elif state in ("scheduled", "parked"):
            row += [age(job.due_ms, now), arguments(job)]
        elif state == "deferred":
            parents = Parents.parse(job.waits)
            count = parents.total or job.joined if parents else ""
            row += [f"{count}, open" if parents and parents.open else count, arguments(job)]
        elif state == "held":
            runs = span(now - job.began_ms) if job.began_ms else ""
            row += [runs, job.holder, arguments(job)]
        else:
            row += [age(job.ended_ms, now), reason(job)]
        rows.append(tuple(row))
    print_table(columns, rows, empty=empty)


def arguments(job: JobInfo, width: int = 50) -> str:
    """A job's arguments as they would stand in a call."""
    parts = [orjson.dumps(value).decode() for value in job.args]
    parts += [f"{name}={orjson.dumps(value).decode()}" for name, value in job.kwargs.items()]
    return shorten(", ".join(parts), width)


def reason(job: JobInfo, width: int = 70) -> str:
    """Why a job is dead, in one line."""
    cause = job.cause or {}
    why = "crashes" if died_of_crashes(job) else why_dead(job.cause)
    kind, message = cause.get("type") or cause.get("kind") or "", cause.get("message") or ""
    said = f"{kind}: {message}" if kind and message else f"{kind}{message}"
    return shorten(f"{why}: {said}" if why else said, width)


def _result(job: JobInfo) -> str:
    return "" if job.result is None else shorten(orjson.dumps(job.result).decode(), 60)
