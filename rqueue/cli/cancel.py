"""`rqueue cancel`: cancel jobs."""

from __future__ import annotations

import click

from rqueue.cli.exit_codes import NEGATIVE, NOT_FOUND, OK, Failure, confirm
from rqueue.cli.output import Column, json_option, print_json, print_table, yes_option
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

WORDS = {
    "ready": "cancelled",
    "blocked": "cancelled (it was behind others of its group)",
    "scheduled": "cancelled (it was scheduled)",
    "held": "cancelled (a worker has it and learns of it; the outcome does not count)",
    "holds": "left alone: a worker has it",
    "dead": "not cancelled: it is dead ('rqueue dead purge' drops it)",
    "ended": "not cancelled: it has ended",
}


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--queue", "-q", metavar="QUEUE", help="Their queue; without it all are searched.")
@click.option("--keep-held", is_flag=True, help="Leave a job alone that a worker has already.")
@yes_option
@json_option
@connection_options
@pass_target
def cancel(
    target: Target,
    /,
    ids: tuple[str, ...],
    queue: str | None,
    keep_held: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Cancel jobs.

    A job that waits ends now. One that a worker has already ends too: the worker learns of it, and
    the result does not count. An async task is cancelled where it awaits; the code of others is not
    interrupted. With --keep-held such jobs are left alone.

    \b
    Exit codes: 0 all were cancelled, 1 some had ended or were left alone, 3 no such job.

    \b
    Examples:
      rqueue cancel order-42 --yes
      rqueue cancel order-42 order-43 -q default --keep-held
    """  # noqa: D301
    from rqueue.errors import UnknownJob
    from rqueue.protocol import commands
    from rqueue.protocol.commands.admin import CANCELLED_FROM
    from rqueue.transport.redis_client import execute

    with target.inspector() as inspector:
        try:
            found = [inspector.job(id_, queue).job for id_ in ids]
        except UnknownJob as error:
            raise Failure(f"{error}; nothing was cancelled", NOT_FOUND) from None
        confirm(f"Cancel {many(len(ids), 'job')}?", yes)
        answers = []
        for job in found:
            call = commands.cancel(inspector.keys(job.queue), job.id, held=not keep_held)
            answers.append((job, execute(inspector.redis, call, queue=job.queue)))
    if as_json:
        print_json(
            [
                {"id": job.id, "queue": job.queue, "cancelled": was in CANCELLED_FROM, "was": was}
                for job, was in answers
            ]
        )
    else:
        print_table(
            [Column("id"), Column("queue"), Column("")],
            [(job.id, job.queue, WORDS.get(was, was)) for job, was in answers],
        )
    return OK if all(was in CANCELLED_FROM for _, was in answers) else NEGATIVE
