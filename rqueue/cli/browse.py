"""`rqueue browse`: a queue's waiting jobs, as a browser sees them, also as they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from heapq import merge
from typing import Literal

import click

from rqueue.cli.output import clock, echo, json_option, print_line, shorten
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.job_info import JobInfo

HEAD = f"{'enqueued':8}  {'level':>5}  {'task':28}  {'id':36}  arguments"
WINDOW = 100
"""Jobs of one look."""


@click.command()
@click.argument("queue")
@click.option("--follow", "-f", is_flag=True, help="Go on as jobs come, until Ctrl-C.")
@click.option(
    "--from",
    "start",
    type=click.Choice(["head", "tail"]),
    default="head",
    show_default=True,
    help="With what waits already, or with what comes.",
)
@click.option("--limit", "-n", type=click.IntRange(1), metavar="N", help="So many jobs at most.")
@click.option("--task", metavar="NAME", help="Only of this task.")
@json_option
@connection_options
@pass_target
def browse(
    target: Target,
    /,
    queue: str,
    follow: bool,
    start: str,
    limit: int | None,
    task: str | None,
    as_json: bool,
) -> None:
    """Show waiting jobs as they come.

    A browser: it takes nothing, counts no delivery, and is shown each job once, in order. With
    --follow it waits for what comes next, without asking again and again. A job that a worker takes
    at once never waits, and is not shown. With --json a line per job. Of a queue that is spread
    over shards the jobs of all are shown, by priority and by when they were enqueued; to follow,
    name a shard.

    \b
    Examples:
      rqueue browse default
      rqueue browse default -f --from tail
      rqueue browse default -f --task app.tasks.send --json
    """  # noqa: D301
    from rqueue.cli.documents import job_document

    shown = 0
    with _waiting(target, queue, follow, start) as jobs:
        if not as_json:
            echo(HEAD, bold=True)
        for info in jobs:
            if task and info.task != task:
                continue
            shown += 1
            if as_json:
                print_line(job_document(info))
            else:
                echo(_text(info))
            if shown == limit:
                return


@contextmanager
def _waiting(target: Target, queue: str, follow: bool, start: str) -> Iterator[Iterator[JobInfo]]:
    """Jobs that wait; of a queue that is spread those of all shards. Raises UnknownQueue, and
    QueueSharded where one that is spread is to be followed."""
    from rqueue.errors import QueueSharded
    from rqueue.inspector.jobs import job_info
    from rqueue.model.job import JobState

    with target.queues(queue) as (clients, inspector):
        if len(clients.clients) > 1:
            if follow or start == "tail":
                raise QueueSharded(queue)
            shards = [inspector.all_jobs(client.name) for client in clients.clients]
            yield merge(*shards, key=lambda job: (-job.level, job.enqueued_ms))
            return
        begin: Literal["head", "tail"] = "tail" if start == "tail" else "head"
        (client,) = clients.clients
        with client.consumer(
            mode="browse", jobs=WINDOW, start=begin, auto_close=not follow
        ) as browser:
            yield (job_info(client.name, JobState.READY, job) for job in browser)


def _text(job: JobInfo) -> str:
    from rqueue.cli.jobs import arguments

    what = job.task or f"({job.problem})"
    return (
        f"{clock(job.enqueued_ms):8}  {job.level:>5}  {shorten(what, 28):28}  {job.id:36}  "
        f"{arguments(job)}"
    )
