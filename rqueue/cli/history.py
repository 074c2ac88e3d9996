"""`rqueue history`: what became of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import click

from rqueue.cli.filled import filled
from rqueue.cli.output import clock, echo, json_option, print_line, shorten, span
from rqueue.cli.show import NO_ATTEMPT
from rqueue.cli.target import Target, connection_options, keep_asking, pass_target

OUTCOMES = (
    *(
        "ack",
        "retry",
        "dead",
        "crash",
        "snooze",
        "refuse",
        "park",
        "cancelled",
        "purged",
        "expired",
        "changed",
        "displaced",
        "moved",
        "damaged",
    ),
)
"""The outcomes that rows give for a job, or for an attempt at it."""

ATTEMPTS = ("ack", "retry", "dead", "crash", "snooze", "refuse")
"""Those of a job that was delivered and begun."""

Row = dict[str, Any]
HEAD = f"{'finished':8}  {'outcome':9}  {'task':28}  {'wait':>8}  {'run':>8}  {'tries':>5}  id"


@click.command()
@click.argument("queue")
@click.option("--follow", "-f", is_flag=True, help="Go on as jobs end, until Ctrl-C.")
@click.option(
    *("--last", "--limit", "-n", "last"),
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="N",
    help="The last N rows.",
)
@click.option(
    "--since", type=filled, metavar="WHEN", help="From here on, oldest first: a time, or 10m (ago)."
)
@click.option("--task", type=filled, metavar="NAME", help="Only this task.")
@click.option(
    "--outcome",
    type=click.Choice(OUTCOMES),
    metavar="WORD",
    help=f"Only {', '.join(OUTCOMES[:-1])} or {OUTCOMES[-1]}.",
)
@click.option(
    "--label", type=filled, metavar="NAME=VALUE", help="Only jobs with this label, or kept header."
)
@click.option("--id", "job", type=filled, metavar="ID", help="Only this job.")
@json_option
@connection_options
@pass_target
def history(
    target: Target,
    /,
    queue: str,
    follow: bool,
    last: int,
    since: str | None,
    task: str | None,
    outcome: str | None,
    label: str | None,
    job: str | None,
    as_json: bool,
) -> None:
    """Show what became of jobs.

    One row for each time that a job was settled, or ended otherwise: its outcome, how long it
    waited and ran, and the error. A job that failed for good is 'dead', whichever way it failed;
    'rqueue dead list' says whether its attempts were exhausted or it was given up. With --json a
    line per row, with all columns. How far it goes back is the queue's setting (200,000 rows unless
    set). Of a queue that is spread over shards it shows the rows of all, by when they were written.

    \b
    Examples:
      rqueue history default
      rqueue history default -f --outcome dead
      rqueue history default --since 1h --task app.tasks.send --json
    """  # noqa: D301
    from rqueue.cli.dead import asked_moment
    from rqueue.cli.documents import row_document
    from rqueue.inspector.history import seen_in

    label_name, equals, label_value = (label or "").partition("=")
    if label and not equals:
        raise click.BadParameter(f"{label!r} is not NAME=VALUE", param_hint="--label")

    def fits(row: Row) -> bool:
        return (
            (not task or row["task"] == task)
            and (not outcome or row["outcome"] == outcome)
            and (not job or row["id"] == job)
            and (not label or row["labels"].get(label_name) == label_value)
        )

    def show(rows: Iterable[Row], line: Callable[[Row], None]) -> None:
        for row in rows:
            if fits(row):
                line(row)

    def as_text(row: Row) -> None:
        echo(text_of(row))

    def as_line(row: Row) -> None:
        print_line(row_document(row))

    line = as_line if as_json else as_text
    first = asked_moment(since, "since")
    with target.inspector() as inspector:
        start = None if since is None else str(first(lambda: inspector.queue(queue).now))
        names = [part.name for part in inspector.parts(queue)]
        if not as_json:
            echo(HEAD, bold=True)
        if start is not None:
            after = dict.fromkeys(names, start)
            for row in inspector.history(queue, start):
                after = seen_in(row, after)
                show([row], line)
        elif task or outcome or job or label:
            # the last N of those that fit: looked for from the end, far enough
            rows, after = inspector.last_rows(queue, max(last * 100, 10_000) if last else 0)
            fitting = [row for row in rows if fits(row)]
            show(islice(fitting, max(0, len(fitting) - last), None), line)
        else:
            rows, after = inspector.last_rows(queue, last)
            show(rows, line)
        if follow:
            keep_asking(inspector)
            for batch in inspector.follow_history(queue, after):
                show(batch, line)


def text_of(row: Row) -> str:
    """A row for people: fixed columns, so that lines that come one by one stay aligned."""
    waited = row["started"] - max(row["enqueued"], row["due"]) if row["started"] else -1
    ran = row["finished"] - row["started"] if row["started"] else -1
    error = f"  {row['error']}" if row["error"] else ""
    cause = row.get("cause")
    if row["outcome"] == "moved" and isinstance(cause, dict):
        error = f"  to queue {cause.get('to')}"
    labels = "".join(f"  {name}={value}" for name, value in row["labels"].items())
    return (
        f"{clock(row['finished']):8}  {row['outcome']:9}  {shorten(row['task'], 28):28}  "
        f"{span(waited) if waited >= 0 else '':>8}  {span(ran) if ran >= 0 else '':>8}  "
        f"{tries(row):>5}  {row['id']}{error}{labels}"
    )


def tries(row: Row) -> int:
    """The attempts at a job up to this row, and with it, where it is of one: what people or its
    time to live end was not tried."""
    cause = row.get("cause")
    by_hand = isinstance(cause, dict) and cause.get("type") in NO_ATTEMPT
    ran = row["outcome"] in ATTEMPTS and not (row["outcome"] == "dead" and by_hand)
    return int(row["attempts"]) + bool(ran or row["started"])
