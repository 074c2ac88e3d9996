"""`rqueue delete`: delete a queue."""

from __future__ import annotations

import click

from rqueue.cli.exit_codes import confirm
from rqueue.cli.filled import filled
from rqueue.cli.output import echo, json_option, print_json, yes_option
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many


@click.command()
@click.argument("queue")
@click.option("--jobs", is_flag=True, help="Also if it has jobs: they end as purged.")
@click.option("--jobs-to", type=filled, metavar="QUEUE", help="Move its jobs to this queue.")
@click.option("--consumers", is_flag=True, help="Also where it has consumers: they are taken off.")
@click.option("--dry-run", is_flag=True, help="Only say what the queue has.")
@yes_option
@json_option
@connection_options
@pass_target
def delete(
    target: Target,
    /,
    queue: str,
    jobs: bool,
    jobs_to: str | None,
    consumers: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete a queue.

    Its options, records and history go with it. A queue with jobs or consumers, or one that
    another queue's dead letters go to, is not deleted unless asked for. With --jobs-to its jobs
    move as by 'rqueue move'; jobs that cannot go are named and the queue stays, or they end with
    --jobs. A deletion that was interrupted goes on with the next call. Of a queue that is spread
    all shards are deleted, and the table.

    \b
    Examples:
      rqueue delete old
      rqueue delete old --jobs-to new --consumers --yes
    """  # noqa: D301
    with target.queues(queue) as (clients, inspector):
        info = inspector.queue(queue)
        count = info.waiting + info.held + info.dead + info.outgoing
        here = sum(info.consumers.values())
        done = 0
        if not dry_run:
            has = f"{many(count, 'job')} and {many(here, 'consumer')}"
            confirm(f"Delete queue '{queue}', with {has}?", yes)
            done = clients.delete(inspector, jobs=jobs, consumers=consumers, jobs_to=jobs_to or "")
    if as_json:
        found = {"jobs": count, "consumers": here} if dry_run else {"jobs": done}
        print_json({"queue": queue, **found, "dry_run": dry_run})
    elif dry_run:
        has = f"{many(count, 'job')} and {many(here, 'consumer')}"
        echo(f"would delete queue '{queue}', which has {has}")
    else:
        echo(f"deleted queue '{queue}'" + (f" and {many(done, 'job')}" if done else ""))
