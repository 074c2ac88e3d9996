"""`rqueue prioritize`: another place for jobs that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rqueue.cli.output import json_option
from rqueue.cli.selection import Selection, tell
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.client._sync.queue import Queue
    from rqueue.model.job_count import JobCount


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

    Jobs that stay as they are get named, with the reason.

    \b
    Exit codes: 0 all were moved, 1 some were not.

    \b
    Examples:
      rqueue prioritize default order-42 --front
      rqueue prioritize default order-42 order-43 --priority 9
    """  # noqa: D301
    if front == (priority is not None):
        raise click.UsageError("say where to: --front or --priority N")
    named = list(dict.fromkeys(ids))
    with target.queues(queue) as (clients, _):
        count = clients.named(named, lambda one: _changed(one, named, priority))
    said = f"{count} of {many(len(named), 'job')} moved"
    which = Selection(ids, "", {}, None)
    return tell(count, "moved", which, said, {"queue": queue}, as_json)


def _changed(queue: Queue, ids: list[str], priority: int | None) -> JobCount:
    """Each on its own, so that one that cannot be moved keeps no other from it. priority: None =
    the front, where the last one goes first: what is named before it comes before it."""
    from rqueue.errors import JobBlocked
    from rqueue.model.job_count import JobCount

    done = JobCount()
    for id_ in reversed(ids) if priority is None else ids:
        try:
            if priority is None:
                done += queue.move_to_front(id_)
            else:
                done += queue.set_priority(id_, priority)
        except JobBlocked as error:
            why = f"it waits behind others of its group, of which '{error.first}' is the first one"
            done += JobCount(0, {id_: why})
    return done
