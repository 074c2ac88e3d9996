"""`rqueue configure`: a queue's own options."""

from __future__ import annotations

import click

from rqueue.cli.output import json_option, print_facts, print_json, span
from rqueue.cli.target import Target, connection_options, pass_target

DEFAULT = "not set: the default"


def setting_in_words(name: str, value: int) -> str:
    """A setting of a queue for people, under the name that its option has."""
    if name == "keep_ms":
        return f"keep {span(value)}"
    return f"{name.removesuffix('_max').replace('_', ' ')} {value}"


@click.command()
@click.argument("queue")
@click.option(
    "--priorities",
    type=int,
    metavar="N",
    help="Levels, 1 to 10 (the default). Not to be changed once jobs were there.",
)
@click.option(
    "--max-deliveries",
    type=int,
    metavar="N",
    help="Attempts of a job whose task says nothing else; default 10, 0: no limit.",
)
@click.option(
    "--max-crashes",
    type=int,
    metavar="N",
    help="Attempts that may cost a worker its process; default 3, 0: no limit.",
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
    max_crashes: int | None,
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
    nothing = all(
        one is None for one in (priorities, max_deliveries, max_crashes, keep, history_rows)
    )
    with target.queue(queue) as (client, inspector):
        if nothing:
            inspector.require_queue(queue)
        else:
            client.configure(
                priorities=priorities,
                max_deliveries=max_deliveries,
                max_crashes=max_crashes,
                keep=keep,
                history_rows_max=history_rows,
            )
        settings = inspector.queue(queue).settings
    if as_json:
        print_json({"queue": queue, **settings})
        return
    keep_ms = settings.get("keep_ms")
    print_facts(
        {
            "queue": queue,
            "priorities": settings.get("priorities", DEFAULT),
            "max deliveries": settings.get("max_deliveries", DEFAULT),
            "max crashes": settings.get("max_crashes", DEFAULT),
            "keep": DEFAULT if keep_ms is None else span(keep_ms),
            "history rows": settings.get("history_rows_max", DEFAULT),
        }
    )
