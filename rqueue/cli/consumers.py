"""`rqueue consumers`: the consumers of a queue."""

from __future__ import annotations

import click

from rqueue.cli.output import Column, echo, json_option, print_json, print_table, size, span
from rqueue.cli.target import Target, connection_options, pass_target


@click.command()
@click.argument("queue")
@json_option
@connection_options
@pass_target
def consumers(target: Target, /, queue: str, as_json: bool) -> None:
    """List who consumes a queue.

    \b
    list     interested (waits, has room), notified (has a wake-up, and is to pull),
             not_interested (has no room, drains, or stands by), browsers (looks, takes nothing)
    held     jobs that it holds, of the most that it may hold at once
    lease    what is left of its right to hold them; a worker whose lease ends loses its jobs
    stands by  its place among those that take over when a live consumer leaves
    timer    * the one that watches the schedule for the next due job

    \b
    Example:
      rqueue consumers default
    """  # noqa: D301
    from rqueue.cli.documents import consumer_document

    with target.inspector() as inspector:
        found = inspector.consumers(queue)
        now = inspector.queue(queue).now if found else 0
    if as_json:
        print_json([consumer_document(info) for info in found])
        return
    columns = [Column("consumer"), Column("worker"), Column("list"), Column("priority", right=True)]
    columns += [Column("held", right=True), Column("bytes", right=True)]
    stands_by = any(info.standby for info in found)
    columns += [Column("stands by", right=True)] if stands_by else []
    columns += [Column("lease", right=True), Column("since", right=True), Column("timer")]
    print_table(
        columns,
        [
            (
                info.name,
                info.worker if info.worker != info.name else "",
                info.state,
                info.priority,
                f"{info.held}/{info.window_jobs}",
                f"{size(info.held_bytes)}/{size(info.window_bytes)}" if info.window_bytes else "",
                *((info.standby or "live",) if stands_by else ()),
                span(info.lease_left_ms)
                if info.lease_left_ms >= 0
                else f"ended {span(-info.lease_left_ms)} ago",
                span(now - info.since_ms),
                "*" if info.timer else "",
            )
            for info in found
        ],
        empty=f"queue '{queue}' has no consumer",
    )
    for info in found:
        for one in info.stopping:
            echo(f"{one} in {info.name}")
