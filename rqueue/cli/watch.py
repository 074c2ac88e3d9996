"""`rqueue watch`: what a job is doing, as it goes on."""

from __future__ import annotations

import click

from rqueue.cli.documents import progress_document
from rqueue.cli.exit_codes import NEGATIVE, NOT_YET, OK
from rqueue.cli.failures import say
from rqueue.cli.filled import filled
from rqueue.cli.log import line_document, print_log_line
from rqueue.cli.named_job import named_job, waiting_for
from rqueue.cli.output import clock, echo, json_option, print_line
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.job import JobState


@click.command()
@click.argument("id")
@click.option(
    "--queue", "-q", type=filled, metavar="QUEUE", help="Its queue; without it all are searched."
)
@click.option(
    "--timeout",
    "-t",
    default="inf",
    metavar="DURATION",
    help="Watch so long (30s, 5m); default: until the job ends.",
)
@json_option
@connection_options
@pass_target
def watch(target: Target, /, id: str, queue: str | None, timeout: str, as_json: bool) -> int:
    """Show how far a job is, until it ends.

    A line for each change of what the job reports (current_job().progress), for each that it logs
    (current_job().log), and for its end; of a job that was not done, with what it reported last. It
    does not poll: this job alone wakes it. Where no worker serves the job's queue or knows its
    task, or the queue is paused, a line on stderr says so first. With --json each change is a
    document.

    \b
    Exit codes: 0 done, 1 it ended otherwise, 3 no such job, 5 it has not ended in that time.

    \b
    Examples:
      rqueue watch order-42
      rqueue watch order-42 -q reports --timeout 30s --json
    """  # noqa: D301
    from rqueue.model.times import parse_duration

    seconds = None if timeout in ("inf", "forever") else parse_duration(timeout, "timeout")
    state, said = JobState.UNKNOWN, None
    with target.inspector() as inspector:
        found = named_job(inspector, id, queue).job
        with waiting_for(inspector, found, seconds) as client:
            for update in client.job(id).watch(seconds):
                before, state = (state, said), update.state
                said = update.progress
                if as_json:
                    print_line(
                        {
                            "id": id,
                            "queue": found.queue,
                            "state": state,
                            "progress": progress_document(said),
                            "lines": [line_document(line) for line in update.lines],
                        }
                    )
                    continue
                for line in update.lines:
                    print_log_line(line)
                if before == (state, said):
                    continue
                if update.progress is None:
                    echo(f"{id}  {state}")
                elif state.ended:
                    echo(f"{id}  {state}, at {update.progress}")
                else:
                    echo(f"{clock(update.progress.at_ms)}  {id}  {state}  {update.progress}")
    if state.ended:
        return OK if state is JobState.DONE else NEGATIVE
    say(f"job '{id}' has not ended in {timeout}: it is {state}")
    return NOT_YET
