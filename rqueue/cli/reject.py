"""`rqueue reject` and `rqueue expire`: jobs that wait become dead letters, or end as expired."""

from __future__ import annotations

import click

from rqueue.cli.exit_codes import confirm
from rqueue.cli.output import json_option, yes_option
from rqueue.cli.selection import Selection, selected, selection_options, tell
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.job_count import JobCount
from rqueue.text.numbers import many


@click.command()
@click.argument("queue")
@selection_options
@click.option("--reason", default="", metavar="TEXT", help="Why, for who looks at them later.")
@json_option
@connection_options
@pass_target
def reject(
    target: Target,
    /,
    queue: str,
    ids: tuple[str, ...],
    every: bool,
    task: str | None,
    labels: tuple[str, ...],
    limit: int | None,
    reason: str,
    as_json: bool,
) -> int:
    """Make dead letters of waiting jobs.

    They stay, with the reason, until 'rqueue dead requeue' gives them another life; or they go to
    the queue to which the dead letters of this one go. Jobs that workers have stay with them.

    Jobs that stay as they are get named, with the reason.

    \b
    Exit codes: 0 some are dead now, 1 none; with named jobs, 1 unless all are.

    \b
    Examples:
      rqueue reject default order-42 --reason "the customer is gone"
      rqueue reject default --task app.tasks.report --limit 100
    """  # noqa: D301
    from rqueue.model.job_filter import JobFilter

    which = selected(ids, every, task, labels, limit)
    with target.queues(queue) as (clients, _):
        if which.ids:
            count = clients.named(which.ids, lambda one: one.reject(*which.ids, reason=reason))
        else:
            these = JobFilter(task=which.task, labels=which.labels)
            count = clients.fitting(
                which.limit, lambda one, most: one.reject_all(these, limit=most, reason=reason)
            )
    return _said(queue, "rejected", count, which, as_json)


@click.command()
@click.argument("queue")
@selection_options
@yes_option
@json_option
@connection_options
@pass_target
def expire(
    target: Target,
    /,
    queue: str,
    ids: tuple[str, ...],
    every: bool,
    task: str | None,
    labels: tuple[str, ...],
    limit: int | None,
    yes: bool,
    as_json: bool,
) -> int:
    """End waiting jobs as expired.

    As if their times to live were over: they end, or become dead letters, or go to another queue,
    as the queue is configured. Jobs that workers have stay with them.

    Jobs that stay as they are get named, with the reason.

    \b
    Exit codes: 0 some expired, 1 none; with named jobs, 1 unless all did.

    \b
    Examples:
      rqueue expire default order-42 --yes
      rqueue expire default --task app.tasks.quote --limit 100
    """  # noqa: D301
    from rqueue.model.job_filter import JobFilter

    which = selected(ids, every, task, labels, limit)
    with target.queues(queue) as (clients, _):
        what = many(len(which.ids), "job") if which.ids else "the jobs that fit"
        confirm(f"Expire {what} of queue '{queue}'?", yes)
        if which.ids:
            count = clients.named(which.ids, lambda one: one.expire(*which.ids))
        else:
            these = JobFilter(task=which.task, labels=which.labels)
            count = clients.fitting(
                which.limit, lambda one, most: one.expire_all(these, limit=most)
            )
    return _said(queue, "expired", count, which, as_json)


def _said(queue: str, word: str, count: JobCount, which: Selection, as_json: bool) -> int:
    said = f"{many(count, 'job')} of queue '{queue}' {word}"
    return tell(count, word, which, said, {"queue": queue}, as_json)
