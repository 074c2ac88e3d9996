"""`rqueue prioritize`: another place for jobs that wait."""

from __future__ import annotations

import click

from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.output import echo, json_option, print_json
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many


@click.command()
@click.argument("queue")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--front", is_flag=True, help="Before all others of their priority.")
@click.option(
    "--priority",
    type=click.IntRange(0, 9),
    metavar="N",
    help="From 0 to 9, higher first: to the tail of that level.",
)
@json_option
@connection_options
@pass_target
def prioritize(
    target: Target,
    /,
    queue: str,
    ids: tuple[str, ...],
    front: bool,
    priority: int | None,
    as_json: bool,
) -> int:
    """Give waiting jobs another priority, or the front.

    The first one that is named comes first. Jobs that workers have, and those that have ended, stay
    as they are. Of a group only the first job can be moved. Each change is a row in the history.

    \b
    Exit codes: 0 all were moved, 1 some were not.

    \b
    Examples:
      rqueue prioritize default order-42 --front
      rqueue prioritize default order-42 order-43 --priority 9
    """  # noqa: D301
    if front == (priority is not None):
        raise click.UsageError("say where to: --front or --priority N")
    with target.queues(queue) as (clients, _):
        if priority is None:
            count = sum(clients.each(lambda one: one.move_to_front(*ids)))
        else:
            count = sum(
                clients.each(lambda one: sum([one.set_priority(id_, priority) for id_ in ids]))
            )
    if as_json:
        print_json({"queue": queue, "moved": count, "left": len(ids) - count})
    else:
        echo(f"{count} of {many(len(ids), 'job')} moved")
    return OK if count == len(ids) else NEGATIVE
