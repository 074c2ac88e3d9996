"""`rqueue move` and `rqueue copy`: jobs of one queue into another one."""

from __future__ import annotations

from itertools import islice

import click

from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.failures import say
from rqueue.cli.output import echo, json_option, print_json
from rqueue.cli.selection import Selection, selected, selection_options
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

SHOWN = 20
"""Jobs that stayed of which the output says why."""


@click.command()
@click.argument("source")
@click.argument("destination", metavar="TARGET")
@selection_options
@click.option("--dead", is_flag=True, help="Dead letters instead of jobs that wait.")
@json_option
@connection_options
@pass_target
def move(
    target: Target,
    /,
    source: str,
    destination: str,
    ids: tuple[str, ...],
    every: bool,
    task: str | None,
    labels: tuple[str, ...],
    limit: int | None,
    dead: bool,
    as_json: bool,
) -> int:
    """Move jobs into another queue.

    They keep ids, priorities, due times and labels, go in their order, and each arrives once, also
    if this command is interrupted: then run it again for the rest. Jobs that workers have stay, and
    so do those whose ids the other queue knows already, or whose unique keys other jobs have there;
    they are named. Each move is a row in the history of the first queue.

    \b
    Exit codes: 0 some were moved, 1 none; with named jobs, 1 unless all were.

    \b
    Examples:
      rqueue move default bulk --task app.tasks.report --limit 1000
      rqueue move orders-dead orders --all
      rqueue move default bulk order-42 order-43
    """  # noqa: D301
    which = selected(ids, every, task, labels, limit)
    return _carry(target, "moved", source, destination, which, dead, as_json)


@click.command()
@click.argument("source")
@click.argument("destination", metavar="TARGET")
@selection_options
@click.option("--dead", is_flag=True, help="Dead letters instead of jobs that wait.")
@json_option
@connection_options
@pass_target
def copy(
    target: Target,
    /,
    source: str,
    destination: str,
    ids: tuple[str, ...],
    every: bool,
    task: str | None,
    labels: tuple[str, ...],
    limit: int | None,
    dead: bool,
    as_json: bool,
) -> int:
    """Copy jobs into another queue.

    The jobs stay, and so do their places. A copy has the id of its original: what is copied again
    while the other queue knows it is no second job.

    \b
    Exit codes: 0 some were copied, 1 none; with named jobs, 1 unless all were.

    \b
    Examples:
      rqueue copy default staging --task app.tasks.report --limit 10
      rqueue copy default staging order-42
    """  # noqa: D301
    which = selected(ids, every, task, labels, limit)
    return _carry(target, "copied", source, destination, which, dead, as_json)


def _carry(
    target: Target,
    word: str,
    source: str,
    destination: str,
    which: Selection,
    dead: bool,
    as_json: bool,
) -> int:
    from rqueue.model.job_filter import JobFilter

    with target.queue(source) as (client, inspector):
        inspector.require_queue(source)
        if which.ids:
            named = client.move if word == "moved" else client.copy
            count = named(destination, *which.ids)
        else:
            fitting = client.move_all if word == "moved" else client.copy_all
            these = JobFilter(task=which.task, labels=which.labels)
            count = fitting(destination, these, limit=which.limit, dead=dead)
    if as_json:
        stayed = dict(count.stayed)
        print_json({"queue": source, "target": destination, word: int(count), "stayed": stayed})
    else:
        echo(f"{many(count, 'job')} of queue '{source}' {word} into queue '{destination}'")
        for id_, why in islice(count.stayed.items(), SHOWN):
            say(f"job '{id_}' stays: {why}")
        if (more := len(count.stayed) - SHOWN) > 0:
            say(f"and {many(more, 'other job')} stay: --json names them")
    return OK if count >= max(1, len(set(which.ids))) else NEGATIVE
