"""`rqueue configure`: a queue's own options."""

from __future__ import annotations

import click

from rqueue.cli.output import json_option, print_facts, print_json, span
from rqueue.cli.target import Target, connection_options, pass_target

DEFAULT = "not set: the default"


@click.command()
@click.argument("queue")
@click.option(
    "--priorities",
    type=int,
    metavar="N",
    help="Levels, 1 to 100; default 10. Not to be changed once jobs were there.",
)
@click.option(
    "--max-deliveries",
    type=int,
    metavar="N",
    help="Attempts of a job whose task says nothing else; default 10, 0: no limit.",
)
@click.option(
    "--keep", metavar="DURATION", help="How long records and results last; default 10 minutes."
)
@click.option(
    "--history-rows",
    type=int,
    metavar="N",
    help="Rows that the history keeps; default 200000, 0: none.",
)
@json_option
@connection_options
@pass_target
def configure(
    target: Target,
    /,
    queue: str,
    priorities: int | None,
    max_deliveries: int | None,
    keep: str | None,
    history_rows: int | None,
    as_json: bool,
) -> None:
    """Set a queue's own options, and show them.

    They hold for all clients and workers, from now on, also for a queue that has no jobs yet.
    Without an option nothing is changed.

    \b
    Examples:
      rqueue configure mail
      rqueue configure mail --max-deliveries 5 --keep 1h
    """  # noqa: D301
    given = {
        "priorities": priorities,
        "max_deliveries": max_deliveries,
        "keep": keep,
        "history_rows_max": history_rows,
    }
    with target.queue(queue) as (client, inspector):
        if any(value is not None for value in given.values()):
            client.configure(**given)  # type: ignore[arg-type]
        else:
            inspector.require_queue(queue)
        settings = inspector.queue(queue).settings
    if as_json:
        print_json({"queue": queue, **settings})
        return
    said = {name: f"{value:,}" for name, value in settings.items()}
    if "keep_ms" in settings:
        said["keep_ms"] = span(settings["keep_ms"])
    names = {
        "priorities": "priorities",
        "max deliveries": "max_deliveries",
        "keep": "keep_ms",
        "history rows": "history_rows_max",
    }
    print_facts({"queue": queue, **{k: said.get(name, DEFAULT) for k, name in names.items()}})
