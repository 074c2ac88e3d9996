"""`rqueue log`: what a job has logged."""

from __future__ import annotations

import logging

import click

from rqueue.cli.filled import filled
from rqueue.cli.named_job import named_job, waiting_for
from rqueue.cli.output import clock, echo, iso, json_option, print_line
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.log_line import LogLine


@click.command()
@click.argument("id")
@click.option(
    "--queue", "-q", type=filled, metavar="QUEUE", help="Its queue; without it all are searched."
)
@click.option("--follow", "-f", is_flag=True, help="Go on, until the job has ended.")
@json_option
@connection_options
@pass_target
def log(target: Target, /, id: str, queue: str | None, follow: bool, as_json: bool) -> None:
    """Show the lines that a job has logged.

    Those of current_job().log, and of the logging handler rqueue.contrib.logs.JobLog: the last
    1000 lines or 100 KB, for a day; of a job that has ended, for as long as its record. What a job
    prints, and what is logged elsewhere, is in the log of its worker.

    \b
    Examples:
      rqueue log order-42
      rqueue log order-42 -q reports --follow
    """  # noqa: D301
    with target.inspector() as inspector:
        found = named_job(inspector, id, queue).job
        if not follow:
            for line in inspector.log(id, found.queue):
                _print(line, as_json)
            return
        with waiting_for(inspector, found, None) as client:
            for update in client.job(id).watch():
                for line in update.lines:
                    _print(line, as_json)


def _print(line: LogLine, as_json: bool) -> None:
    if as_json:
        print_line(line_document(line))
    else:
        print_log_line(line)


def line_document(line: LogLine) -> dict[str, object]:
    """A line for programs."""
    return {
        "number": line.number,
        "delivery": line.delivery,
        "at": iso(line.at_ms),
        "level": line.level,
        "text": line.text,
    }


def print_log_line(line: LogLine) -> None:
    """A line for people."""
    echo(f"{clock(line.at_ms)}  {logging.getLevelName(line.level)}  {line.text}")
