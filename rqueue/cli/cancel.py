"""`rqueue cancel`: cancel jobs."""

from __future__ import annotations

import click

from rqueue.cli.exit_codes import NEGATIVE, NOT_FOUND, OK, Failure, confirm
from rqueue.cli.filled import filled
from rqueue.cli.named_job import named_job
from rqueue.cli.output import Column, json_option, print_json, print_table, yes_option
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

WORDS = {
    "ready": "cancelled",
    "blocked": "cancelled (it was behind others of its group)",
    "scheduled": "cancelled (it was scheduled)",
    "deferred": "cancelled (it waited for other jobs)",
    "held": "cancelled (a worker has it and learns of it; the outcome does not count. What runs on"
    " ends with --running or --kill)",
    "requested": "cancelled (its worker is notified; it still runs)",
    "delivered": "cancelled (it was interrupted; it has not returned yet)",
    "stopped": "cancelled (it runs no more)",
    "holds": "left alone: a worker has it",
    "dead": "not cancelled: it is dead ('rqueue dead purge' drops it)",
    "ended": "not cancelled: it has ended",
}

RUNS = ("requested", "delivered")
"""The code of such a job was to be stopped, and still runs."""


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option(
    "--queue", "-q", type=filled, metavar="QUEUE", help="Their queue; without it all are searched."
)
@click.option("--keep-held", is_flag=True, help="Leave a job alone that a worker has already.")
@click.option("--workflow", is_flag=True, help="And all jobs that it waits for.")
@click.option("--running", is_flag=True, help="Interrupt the code of a job that runs.")
@click.option("--kill", is_flag=True, help="Kill the worker process of a job that runs.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="With --running or --kill: how long to wait until the code runs no more.",
)
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
    workflow: bool,
    running: bool,
    kill: bool,
    timeout: float,
    yes: bool,
    as_json: bool,
) -> int:
    """Cancel jobs.

    A job that waits ends now. One that a worker has already ends too: the worker learns of it, and
    the result does not count. An async task is cancelled where it awaits; the code of others is
    interrupted only with --running, by an exception, and in a thread not before what it waits in
    returns. With --kill its process is killed; the other jobs in it go back. Both reach the code of
    a job that was cancelled before, too, while it runs on. With --keep-held jobs
    that a worker has are left alone. With --workflow the jobs that it waits for, and those before
    them, are cancelled too: the whole of a workflow, if the job is its last call. With --running or
    --kill what runs of it is stopped.

    \b
    Exit codes: 0 all were cancelled, 1 some had ended or were left alone, or still run although
    they were to be stopped, 3 no such job.

    \b
    Examples:
      rqueue cancel order-42 --yes
      rqueue cancel order-42 order-43 -q default --keep-held
      rqueue cancel report --workflow --yes
      rqueue cancel report --workflow --kill --yes
      rqueue cancel report-7 --running --yes
      rqueue cancel report-7 --kill --timeout 30 --yes
    """  # noqa: D301
    from rqueue.errors import UnknownJob
    from rqueue.inspector.cancelling import cancel_jobs, with_workflows

    if keep_held and (running or kill):
        raise click.UsageError("--keep-held leaves alone what --running and --kill stop")
    with target.inspector() as inspector:
        try:
            found = [named_job(inspector, id_, queue).job for id_ in ids]
        except (UnknownJob, Failure) as error:
            raise Failure(f"{error}; nothing was cancelled", NOT_FOUND) from None
        asked = with_workflows(inspector, found) if workflow else found
        confirm(f"Cancel {many(len(asked), 'job')}?", yes)
        how = {"held": not keep_held, "running": running, "kill": kill}
        answers = cancel_jobs(inspector, asked, found if workflow else (), timeout=timeout, **how)
    if as_json:
        print_json(
            [
                {"id": one.id, "queue": one.queue, "cancelled": one.cancelled, "was": one.was}
                for one in answers
            ]
        )
    else:
        print_table(
            [Column("id"), Column("queue"), Column("")],
            [(one.id, one.queue, WORDS.get(one.was, one.was)) for one in answers],
        )
    # what a workflow had done before says nothing against the cancel of the rest
    left = not all(one.cancelled and one.was not in RUNS for one in answers[: len(found)])
    return NEGATIVE if left or any(one.was in ("holds", *RUNS) for one in answers) else OK
