"""`rqueue result`: wait for a job."""

from __future__ import annotations

import click

from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.filled import filled
from rqueue.cli.named_job import named_job, waiting_for
from rqueue.cli.output import json_option, print_json
from rqueue.cli.target import Target, connection_options, pass_target


@click.command()
@click.argument("id")
@click.option(
    "--queue", "-q", type=filled, metavar="QUEUE", help="Its queue; without it all are searched."
)
@click.option(
    "--timeout",
    "-t",
    default="0",
    metavar="DURATION",
    help="Wait so long (30s, 5m, or 'inf'); default: do not wait.",
)
@json_option
@connection_options
@pass_target
def result(target: Target, /, id: str, queue: str | None, timeout: str, as_json: bool) -> int:
    """Wait for a job's result and print it.

    The result is printed as JSON and stays: it can be asked for again while the queue keeps it.
    With --json the answer is a document with the job's state. Waiting does not poll; where no
    worker serves the job's queue or knows its task, or the queue is paused, a line on stderr says
    so first.

    \b
    Exit codes: 0 done, 1 failed or cancelled (the reason is printed), 3 no such job,
    5 not done yet.

    \b
    Examples:
      rqueue result order-42 --timeout 30s
      rqueue result order-42 -q default --json | jq .result
    """  # noqa: D301
    from rqueue.errors import (
        JobCancelled,
        JobDisplaced,
        JobExpired,
        JobFailed,
        JobMoved,
        ResultExpired,
    )
    from rqueue.model.times import parse_duration

    seconds = None if timeout in ("inf", "forever") else parse_duration(timeout, "timeout")
    with target.inspector() as inspector:
        found = named_job(inspector, id, queue).job
        document = {"id": id, "queue": found.queue}
        try:
            with waiting_for(inspector, found, seconds) as client:
                value = client.job(id).result(seconds)
        except JobFailed as failed:
            cause = {
                "type": failed.type,
                "message": failed.remote_message,
                "traceback": failed.remote_traceback,
                "kind": failed.kind,
                "attempts": failed.attempts,
                "worker": failed.worker,
            }
            return _refused({**document, "state": "dead", "cause": cause}, failed, as_json)
        except ResultExpired as gone:
            return _refused({**document, "state": "done", "kept": False}, gone, as_json)
        except (JobCancelled, JobDisplaced, JobExpired, JobMoved) as ended:
            state = str(inspector.job(id, found.queue).job.state)
            return _refused({**document, "state": state}, ended, as_json)
    if as_json:
        print_json({**document, "state": "done", "result": value})
    else:
        print_json(value, indent=True)
    return OK


def _refused(document: dict[str, object], error: Exception, as_json: bool) -> int:
    if as_json:
        print_json(document)
    else:
        from rqueue.cli.failures import say_all

        say_all(error)
    return NEGATIVE
