"""`rqueue move` and `rqueue copy`: jobs of one queue into another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.exit_codes import confirm
from rqueue.cli.output import json_option, yes_option
from rqueue.cli.selection import Selection, selected, selection_options, tell
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.client._sync.queue import Queue
    from rqueue.model.job_count import JobCount


def _carrying(word: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command that takes jobs of one queue into another one; its docstring is the help."""

    def decorate(described: Callable[..., Any]) -> click.Command:
        @wraps(described)
        def run(
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
            yes: bool,
            as_json: bool,
        ) -> int:
            which = selected(ids, every, task, labels, limit)
            if dead:
                verb = "Move" if word == "moved" else "Copy"
                what = "these dead letters" if which.ids else "the dead letters that fit"
                confirm(f"{verb} {what} into queue '{destination}', to be run there?", yes)
            return _carry(target, word, source, destination, which, dead, as_json)

        command: Callable[..., Any] = pass_target(run)
        for option in (
            connection_options,
            json_option,
            yes_option,
            click.option("--dead", is_flag=True, help="Dead letters, which are run there."),
            selection_options,
            click.argument("destination", metavar="TARGET"),
            click.argument("source"),
        ):
            command = option(command)
        return click.command()(command)

    return decorate


@_carrying("moved")
def move() -> None:
    """Move jobs into another queue.

    They keep ids, priorities, due times and labels, go in their order, and each arrives once, also
    if this command is interrupted: then run it again for the rest. Jobs that workers have stay, and
    so do those whose ids the other queue knows already, or whose unique keys other jobs have there;
    they are named. Each move is a row in the history of the first queue.

    TARGET has to be there: 'rqueue configure TARGET --kind plain' makes a queue.

    Dead letters stay, unless --dead says that they are meant: in the other queue they are jobs
    that run, their attempts counted from nothing.

    \b
    Exit codes: 0 some were moved, 1 none; with named jobs, 1 unless all were; 3 no such queue.

    \b
    Examples:
      rqueue move default bulk --task app.tasks.report --limit 1000
      rqueue move orders-dead orders --all
      rqueue move default bulk order-42 order-43
      rqueue move default repaired --dead --all --yes
    """  # noqa: D301


@_carrying("copied")
def copy() -> None:
    """Copy jobs into another queue.

    The jobs stay, and so do their places. A copy has the id of its original: what is copied again
    while the other queue knows it is no second job. TARGET has to be there, and dead letters are
    copied with --dead, as in 'rqueue move'.

    \b
    Exit codes: 0 some were copied, 1 none; with named jobs, 1 unless all were; 3 no such queue.

    \b
    Examples:
      rqueue copy default staging --task app.tasks.report --limit 10
      rqueue copy default staging order-42
    """  # noqa: D301


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

    def named(one: Queue) -> JobCount:
        go = one.move if word == "moved" else one.copy
        return go(destination, *which.ids, dead=dead)

    def fitting(one: Queue, most: int | None) -> JobCount:
        go = one.move_all if word == "moved" else one.copy_all
        return go(destination, these, limit=most, dead=dead)

    these = JobFilter(task=which.task, labels=which.labels)
    with target.queues(source) as (clients, _):
        if which.ids:
            count = clients.named(which.ids, named)
        else:
            count = clients.fitting(which.limit, fitting)
    said = f"{many(count, 'job')} of queue '{source}' {word} into queue '{destination}'"
    facts = {"queue": source, "target": destination}
    return tell(count, word, which, said, facts, as_json)
