"""Which of a queue's jobs a command means: named ones, or all that fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from rqueue.cli.enqueue import pairs

F = TypeVar("F", bound=Callable[..., Any])


class Selection(NamedTuple):
    """ids: the jobs that are named. If none are: all that wait and fit `task` and `labels`, the
    first `limit` of them."""

    ids: tuple[str, ...]
    task: str
    labels: dict[str, str]
    limit: int | None


def selection_options(function: F) -> F:
    """Give a command `[ID]...`, --all, --task, --label and --limit."""
    for option in (
        click.option(
            "--limit", "-n", type=click.IntRange(0), metavar="N", help="The first N of these."
        ),
        click.option(
            "--label", "labels", multiple=True, metavar="NAME=VALUE", help="All with this label."
        ),
        click.option("--task", metavar="NAME", help="All of this task."),
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
