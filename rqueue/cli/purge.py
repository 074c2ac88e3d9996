"""`rqueue purge`: end a queue's waiting jobs."""

from __future__ import annotations

import click

from rqueue.cli.exit_codes import confirm
from rqueue.cli.output import echo, json_option, print_json, yes_option
from rqueue.cli.progress import Counter
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many


@click.command()
@click.argument("queue")
@click.option("--scheduled", is_flag=True, help="The scheduled and parked jobs too.")
@click.option(
    "--held", is_flag=True, help="Also jobs that workers have: their outcomes do not count then."
)
@click.option("--dry-run", is_flag=True, help="Only say how many jobs that would be.")
@yes_option
@json_option
@connection_options
@pass_target
def purge(
    target: Target,
    /,
    queue: str,
    scheduled: bool,
    held: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """End a queue's waiting jobs.

    Each purged job leaves a record ("purged") and a row in history; a client that waits for its
    result learns of it. Dead letters stay: see 'rqueue dead purge'. Jobs that are enqueued
    meanwhile are not pursued.

    \b
    Examples:
      rqueue purge default --dry-run
      rqueue purge default --scheduled --yes
    """  # noqa: D301
    with target.inspector() as inspector:
        info = inspector.queue(queue)
        count = info.ready + info.blocked + info.scheduled * scheduled + info.held * held
        done = 0
        if not dry_run and count:
            confirm(f"Purge {many(count, 'job')} of queue '{queue}'?", yes)
            with Counter(f"purging {queue}", count, quiet=as_json) as counter:
                done = inspector.purge(
                    queue, scheduled=scheduled, held=held, progress=counter.update
                )
    if as_json:
        print_json({"queue": queue, "jobs": count if dry_run else done, "dry_run": dry_run})
    elif dry_run:
        echo(f"would purge {many(count, 'job')} of queue '{queue}'")
    else:
        echo(f"purged {many(done, 'job')} of queue '{queue}'")
