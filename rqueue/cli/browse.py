"""`rqueue browse`: a queue's waiting jobs, as a browser sees them, also as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from heapq import merge
from typing import TYPE_CHECKING, Literal

import click

from rqueue.cli.filled import filled
from rqueue.cli.output import clock, echo, json_option, print_line, shorten
from rqueue.cli.target import Target, client_of, connection_options, keep_asking, pass_target
from rqueue.model.job_info import JobInfo

if TYPE_CHECKING:
    from rqueue.client._async.queue import AsyncQueue
    from rqueue.client._sync.queue import Queue
    from rqueue.inspector import Inspector

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
@click.option("--task", type=filled, metavar="NAME", help="Only of this task.")
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
    over shards the jobs of all are shown, by priority and by when they were enqueued; with
    --follow or --from tail as each shard shows them.

    \b
    Examples:
      rqueue browse default
      rqueue browse default -f --from tail
      rqueue browse default -f --task app.tasks.send --json
    """  # noqa: D301
    shown = 0

    def show(info: JobInfo, shard: str = "") -> bool:
        """Show a job, if it is wanted; whether more are."""
        from rqueue.cli.documents import job_document

        nonlocal shown
        if not task or info.task == task:
            shown += 1
            if as_json:
                print_line(job_document(info))
            else:
                echo(_text(info, shard))
        return shown != limit

    begin: Literal["head", "tail"] = "tail" if start == "tail" else "head"
    with target.inspector() as inspector:
        parts = inspector.parts(queue)
        if follow:
            keep_asking(inspector)
        if not as_json:
            echo(HEAD if parts.table is None else f"{HEAD}  shard", bold=True)
        if parts.table is None:
            jobs = _waiting(client_of(queue, parts.found[0].client, inspector), begin, follow)
        elif follow or start == "tail":
            _follow(queue, inspector, begin, lambda name, info: show(info, name))
            return
        else:
            shards = [inspector.all_jobs(part.name) for part in parts]
            jobs = merge(*shards, key=lambda job: (-job.level, job.enqueued_ms))
        for info in jobs:
            if not show(info, info.queue if parts.table else ""):
                return


def _waiting(client: Queue, start: Literal["head", "tail"], follow: bool) -> Iterator[JobInfo]:
    """Jobs that wait, as a browser sees them."""
    from rqueue.inspector.jobs import job_info
    from rqueue.model.job import JobState

    with client.consumer(mode="browse", jobs=WINDOW, start=start, auto_close=not follow) as browser:
        for job in browser:
            yield job_info(client.name, JobState.READY, job)


def _follow(
    queue: str,
    inspector: Inspector,
    start: Literal["head", "tail"],
    show: Callable[[str, JobInfo], bool],
) -> None:
    """Jobs of all shards as they come, those of one that opens later from its head."""
    from rqueue.cli.shard_listener import listen
    from rqueue.inspector.jobs import job_info
    from rqueue.model.job import JobState

    async def browse(its: AsyncQueue, late: bool) -> AsyncIterator[JobInfo]:
        begin = "head" if late else start
        async with its.consumer(mode="browse", jobs=WINDOW, start=begin) as browser:
            async for job in browser:
                yield job_info(its.name, JobState.READY, job)

    listen(queue, inspector.settings, browse, show)


def _text(job: JobInfo, shard: str) -> str:
    from rqueue.cli.jobs import arguments

    what = job.task or f"({job.problem})"
    where = f"  {shard}" if shard else ""
    return (
        f"{clock(job.enqueued_ms):8}  {job.level:>5}  {shorten(what, 28):28}  {job.id:36}  "
        f"{arguments(job)}{where}"
    )
