"""Which of a queue's jobs a command means: named ones, or all that fit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import click

from rqueue.cli.enqueue import pairs
from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.failures import say
from rqueue.cli.filled import filled
from rqueue.cli.output import echo, print_json
from rqueue.model.job_count import JobCount
from rqueue.text.numbers import many

F = TypeVar("F", bound=Callable[..., Any])


class Selection(NamedTuple):
    """ids: the jobs that are named. If none are: all that wait and fit `task` and `labels`, the
    first `limit` of them."""

    ids: tuple[str, ...]
    task: str
    labels: dict[str, str]
    limit: int | None


task_option = click.option("--task", type=filled, metavar="NAME", help="All of this task.")
labels_option = click.option(
    "--label",
    "labels",
    type=filled,
    multiple=True,
    metavar="NAME=VALUE",
    help="All with this label.",
)


def selection_options(function: F) -> F:
    """Give a command `[ID]...`, --all, --task, --label and --limit."""
    for option in (
        click.option(
            "--limit", "-n", type=click.IntRange(0), metavar="N", help="The first N of these."
        ),
        labels_option,
        task_option,
        click.option("--all", "every", is_flag=True, help="All that wait."),
        click.argument("ids", nargs=-1, metavar="[ID]..."),
    ):
        function = option(function)
    return function


def selected(
    ids: tuple[str, ...],
    every: bool,
    task: str | None,
    labels: tuple[str, ...],
    limit: int | None,
) -> Selection:
    """What the options say. Raises UsageError where they say nothing, or two things."""
    fitting = bool(every or task or labels or limit is not None)
    if fitting == bool(ids):
        raise click.UsageError("name jobs, or say which: --all, --task, --label, --limit")
    return Selection(ids, task or "", dict(pairs(labels, "--label")), limit)


SHOWN = 20
"""Jobs that stayed of which the output says why."""


def tell(
    count: JobCount, word: str, which: Selection, said: str, facts: dict[str, Any], as_json: bool
) -> int:
    """Print how many jobs were changed, and why others stayed as they are; returns the exit code.

    word: what was done to them, such as `moved`. said: the line for people. facts: of the document.
    """
    if as_json:
        print_json(facts | {word: int(count), "stayed": dict(count.stayed)})
    else:
        echo(said)
        for id_, why in islice(count.stayed.items(), SHOWN):
            say(f"job '{id_}' stays: {why}")
        if (more := len(count.stayed) - SHOWN) > 0:
            say(f"and {many(more, 'other job')} stay: --json names them")
    return OK if count >= max(1, len(set(which.ids))) else NEGATIVE
