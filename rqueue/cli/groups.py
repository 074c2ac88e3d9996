"""`rqueue groups`: whose the sticky groups of a queue are."""

from __future__ import annotations

from dataclasses import asdict

import click

from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.failures import say
from rqueue.cli.output import Column, json_option, print_facts, print_json, print_table
from rqueue.cli.target import Target, connection_options, pass_target


@click.command()
@click.argument("queue")
@click.argument("group", required=False)
@click.option("--reset", is_flag=True, help="Take the group from its consumer.")
@json_option
@connection_options
@pass_target
def groups(target: Target, /, queue: str, group: str | None, reset: bool, as_json: bool) -> int:
    """Show who owns a queue's sticky groups, or free one.

    A group belongs to a bucket of groups, and a bucket to the consumer that took the first job of
    it, until that leaves. A group that is freed belongs, with its bucket, to the consumer that
    takes the next job; what its owner holds stays there, and goes first.

    \b
    buckets  that it owns
    ready    jobs that are ready for it alone
    list     not_interested: it has no room, and what is ready for it waits; see `rqueue consumers`

    \b
    Exit codes: 0 the group has, or had, an owner, or the list was shown; 1 it has none.

    \b
    Examples:
      rqueue groups sessions
      rqueue groups sessions customer-7
      rqueue groups sessions customer-7 --reset
    """  # noqa: D301
    if reset and group is None:
        raise click.UsageError("name the group that is to be freed")
    with target.queue(queue) as (client, inspector):
        owners = inspector.group_owners(queue)
        if group is not None:
            owner = client.groups.reset(group) if reset else client.groups.owner(group)
    if not owners.buckets:
        say(f"the groups of queue '{queue}' are not sticky: rqueue configure {queue} --sticky N")
        return NEGATIVE
    if group is not None:
        facts = {"queue": queue, "group": group, "bucket": owners.bucket_of(group)}
        if as_json:
            print_json({**facts, "owner": owner or None, "reset": reset})
        else:
            what = "was owned by" if reset else "owned by"
            print_facts({**facts, what: owner or "no consumer"})
        return OK if owner else NEGATIVE
    if as_json:
        shown = [asdict(one) for one in owners.consumers]
        print_json({"queue": queue, "buckets": owners.buckets, "owners": shown})
        return OK
    print_table(
        [
            Column("consumer"),
            Column("buckets", right=True),
            Column("ready", right=True),
            Column("list"),
        ],
        [(one.consumer, one.buckets, one.ready, one.state) for one in owners.consumers],
        empty=f"no consumer owns one of the {owners.buckets} buckets of queue '{queue}'",
    )
    return OK
