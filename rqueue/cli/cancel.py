"""`rqueue cancel`: cancel jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from rqueue.cli.exit_codes import NEGATIVE, NOT_FOUND, OK, Failure, confirm
from rqueue.cli.filled import filled
from rqueue.cli.named_job import named_job
from rqueue.cli.output import Column, json_option, print_json, print_table, yes_option
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.job import JobState
from rqueue.model.parents import Parents
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.inspector import Inspector
    from rqueue.model.job_info import JobInfo

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
    them, are cancelled too: the whole of a workflow, where the job is its last call.

    \b
    Exit codes: 0 all were cancelled, 1 some had ended or were left alone, or still run although
    they were to be stopped, 3 no such job.

    \b
    Examples:
      rqueue cancel order-42 --yes
      rqueue cancel order-42 order-43 -q default --keep-held
      rqueue cancel report --workflow --yes
      rqueue cancel report-7 --running --yes
      rqueue cancel report-7 --kill --timeout 30 --yes
    """  # noqa: D301
    from rqueue.errors import UnknownJob
    from rqueue.protocol import commands
    from rqueue.protocol.commands.admin import CANCELLED_FROM
    from rqueue.transport.redis_client import execute

    if workflow and (running or kill):
        raise click.UsageError("--workflow cancels what waits; stop what runs by its id")
    if keep_held and (running or kill):
        raise click.UsageError("--keep-held leaves alone what --running and --kill stop")
    with target.inspector() as inspector:
        try:
            found = [named_job(inspector, id_, queue).job for id_ in ids]
        except (UnknownJob, Failure) as error:
            raise Failure(f"{error}; nothing was cancelled", NOT_FOUND) from None
        asked = list(found)
        if workflow:
            asked += [one for job in found for one in _waited_for(inspector, job)]
        confirm(f"Cancel {many(len(asked), 'job')}?", yes)
        answers = []

        def cancel_one(job: JobInfo) -> None:
            call = commands.cancel(inspector.keys(job.queue), job.id, held=not keep_held)
            answers.append((job, execute(inspector.client_of(job.queue), call, queue=job.queue)))

        for job in asked:
            if running or kill:
                answers.append((job, _stop(inspector, job, kill=kill, timeout=timeout)))
            else:
                cancel_one(job)
        for job in found if workflow else ():
            for one in _joined_since(inspector, job):
                cancel_one(one)
    cancelled = CANCELLED_FROM | {"requested", "delivered", "stopped"}
    if as_json:
        print_json(
            [
                {"id": job.id, "queue": job.queue, "cancelled": was in cancelled, "was": was}
                for job, was in answers
            ]
        )
    else:
        print_table(
            [Column("id"), Column("queue"), Column("")],
            [(job.id, job.queue, WORDS.get(was, was)) for job, was in answers],
        )
    done = cancelled - {"requested", "delivered"}
    # what a workflow had done before says nothing against the cancel of the rest
    left = [was for _, was in answers[: len(found)] if was not in done]
    return NEGATIVE if left or any(was == "holds" for _, was in answers) else OK


def _waited_for(inspector: Inspector, job: JobInfo) -> list[JobInfo]:
    """The jobs that this one waits for, by nothing but their ids."""
    from rqueue.inspector.workflows import waited_for

    found = waited_for(inspector.redis, inspector.keys(job.queue), job.id)
    return [replace(job, id=id_, queue=queue) for queue, id_ in found]


def _joined_since(inspector: Inspector, job: JobInfo) -> Iterator[JobInfo]:
    """The members that have come to a stream since this was read; the job that waited for them is
    cancelled, so no others come."""
    from rqueue.inspector.workflows import joined_since

    parents = Parents.parse(job.waits)
    if job.state is JobState.DEFERRED and parents is not None and parents.open:
        client, keys = inspector.client_of(job.queue), inspector.keys(job.queue)
        for id_ in joined_since(client, keys, job.id, job.joined):
            yield replace(job, id=id_)


def _stop(inspector: Inspector, job: JobInfo, *, kill: bool, timeout: float) -> str:
    """Cancel a job with force; the word of `WORDS` for what came of it."""
    from rqueue.client._sync.queue import Queue
    from rqueue.model.cancellation import Cancellation

    namespace = inspector.keys(job.queue).namespace
    with Queue(job.queue, redis=inspector.client_of(job.queue), namespace=namespace) as queue:
        end = queue.cancel(job.id, running=True, kill=kill, timeout=timeout)
    if end is Cancellation.NONE:
        return "dead" if job.state is JobState.DEAD else "ended"
    return "stopped" if end is Cancellation.ENDED else str(end)
