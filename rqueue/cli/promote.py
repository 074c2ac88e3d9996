"""`rqueue promote`: scheduled jobs become ready now."""

from __future__ import annotations

import click

from rqueue.cli.enqueue import pairs
from rqueue.cli.output import json_option
from rqueue.cli.selection import Selection, labels_option, task_option, tell
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many


@click.command()
@click.argument("queue")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="All that are scheduled.")
@task_option
@labels_option
@json_option
@connection_options
@pass_target
def promote(
    target: Target,
    /,
    queue: str,
    ids: tuple[str, ...],
    every: bool,
    task: str | None,
    labels: tuple[str, ...],
    as_json: bool,
) -> int:
    """Make scheduled jobs ready now.

    They come to the head of their levels, in the order of their due times. Jobs are named, or all
    are meant that fit --task and --label.

    Jobs that stay as they are get named, with the reason.

    \b
    Exit codes: 0 some became ready, 1 none was scheduled; with named jobs, 1 unless all were.

    \b
    Examples:
      rqueue promote default order-42
      rqueue promote default --all
      rqueue promote default --task app.tasks.report --label tenant=7
    """  # noqa: D301
    from rqueue.model.job_count import JobCount
    from rqueue.model.job_filter import JobFilter

    fitting = bool(every or task or labels)
    if fitting == bool(ids):
        raise click.UsageError("name jobs, or say which: --all, --task, --label")
    which = Selection(ids, task or "", dict(pairs(labels, "--label")), None)
    with target.queues(queue) as (clients, _):
        if ids:
            count = clients.named(ids, lambda one: one.promote(*ids))
        else:
            these = JobFilter(task=which.task, labels=which.labels)
            count = JobCount(sum(clients.each(lambda one: one.promote_all(these))))
    said = f"{many(count, 'job')} of queue '{queue}' made ready"
    return tell(count, "promoted", which, said, {"queue": queue}, as_json)
