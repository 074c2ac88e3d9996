"""`rqueue shards`: over which shards a queue is spread, and how that changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from rqueue.cli.exit_codes import confirm
from rqueue.cli.filled import filled
from rqueue.cli.output import Column, echo, json_option, print_json, print_table, yes_option
from rqueue.cli.target import Target, connection_options, pass_target, say_without
from rqueue.settings import redact

if TYPE_CHECKING:
    from rqueue.client._sync.sharded_queue import ShardedQueue
    from rqueue.inspector import Inspector
    from rqueue.model.shard_table import ShardTable

_UNORDERED = click.option(
    "--unordered", is_flag=True, help="Jobs of keys that move wait for nothing."
)


@click.group(no_args_is_help=True)
def shards() -> None:
    """Spread a queue over shards, show, open and drain them.

    A shard is a queue of its own, 'orders~0'; jobs of one key are in one shard. While a shard opens
    or is drained, jobs of keys that move wait until what was enqueued before has ended.
    """


@contextmanager
def _sharded(
    target: Target, queue: str, shards: int | None = None
) -> Iterator[tuple[ShardedQueue, Inspector]]:
    from rqueue.client._sync.sharded_queue import ShardedQueue

    with target.inspector() as inspector:
        inspector.keys(queue)
        settings = inspector.settings
        with ShardedQueue(queue, redis=inspector.redis, settings=settings, shards=shards) as made:
            yield made, inspector


@shards.command("create")
@click.argument("queue")
@click.argument("count", type=int)
@json_option
@connection_options
@pass_target
def create(target: Target, /, queue: str, count: int, as_json: bool) -> None:
    """Spread a queue over so many shards.

    The name must have no jobs and no consumers of its own; start pools of it afterwards. A queue
    that is spread already stays as it is.

    \b
    Example:
      rqueue shards create orders 8
    """  # noqa: D301
    with _sharded(target, queue, count) as (sharded, _):
        table = sharded.table()
    said = f"queue '{queue}' is spread over {len(table.open)} open shards"
    _say(table, f"{said} (version {table.version})", as_json)


@shards.command("list")
@click.argument("queue")
@json_option
@connection_options
@pass_target
def list_(target: Target, /, queue: str, as_json: bool) -> int:
    """List a queue's shards.

    'waits for' names the shards whose earlier jobs have to end before this one delivers; a shard
    with 'fence' still has such jobs. One whose server cannot be asked is missing, and the exit code
    is 4.

    \b
    Example:
      rqueue shards list orders
    """  # noqa: D301
    from rqueue.errors import RedisUnavailable

    with _sharded(target, queue) as (sharded, inspector):
        away: Exception | None = None
        try:
            table = sharded.advance()
        except RedisUnavailable as error:
            away = error
            table = sharded.table()
        survey = inspector.survey(queue)
    rows = [
        (shard, table.name(shard), survey.each.get(table.name(shard)))
        for shard in table.shards.values()
    ]
    if as_json:
        print_json(
            {
                "queue": queue,
                "version": table.version,
                "moving": table.moving,
                "shards": [
                    {
                        "shard": shard.number,
                        "queue": name,
                        "state": shard.state,
                        "weight": shard.weight,
                        "place": redact(shard.place),
                        "missing": name in survey.missing,
                        "waiting": its.waiting if its else 0,
                        "held": its.held if its else 0,
                        "waits_for": list(its.fences) if its else [],
                        "fence": its is not None and its.fenced,
                    }
                    for shard, name, its in rows
                ],
            }
        )
        return say_without(survey.missing)
    print_table(
        [
            *(Column("shard"), Column("state"), Column("weight", right=True)),
            *(Column("waiting", right=True), Column("held", right=True), Column("waits for")),
            *(Column(""), Column("place")),
        ],
        [
            (
                *(name, "missing" if name in survey.missing else shard.state, shard.weight),
                *((its.waiting, its.held) if its else ("", "")),
                ", ".join(map(str, its.fences)) if its else "",
                "fence" if its and its.fenced else "",
                redact(shard.place),
            )
            for shard, name, its in rows
        ],
    )
    if table.moving:
        held_up = f", held up: {away}" if away else ""
        echo(f"changing: {table.moving}{held_up}")
    return say_without(survey.missing)


@shards.command("open")
@click.argument("queue")
@click.argument("number", type=int, required=False)
@click.option("--weight", type=int, default=1, metavar="N", help="Its part of the keys; default 1.")
@click.option("--place", type=filled, metavar="URL", help="Its server; default that of the queue.")
@_UNORDERED
@json_option
@connection_options
@pass_target
def open_(
    target: Target,
    /,
    queue: str,
    number: int | None,
    weight: int,
    place: str | None,
    unordered: bool,
    as_json: bool,
) -> None:
    """Open one shard more, or one that was closed.

    It gets its part of the keys from all others. Its jobs wait until what was enqueued before has
    ended in these.

    \b
    Examples:
      rqueue shards open orders
      rqueue shards open orders 8 --weight 2
    """  # noqa: D301
    with _sharded(target, queue) as (sharded, _):
        opened = sharded.open(number, weight=weight, place=place or "", order=not unordered)
        table = sharded.table()
    said = f"shard {opened} of queue '{queue}' is open"
    _say(table, f"{said}, and waits" if table.moving else said, as_json)


@shards.command("drain")
@click.argument("queue")
@click.argument("number", type=int)
@_UNORDERED
@json_option
@connection_options
@pass_target
def drain(target: Target, /, queue: str, number: int, unordered: bool, as_json: bool) -> None:
    """Let a shard run empty; it is closed then.

    It takes no jobs any more. All others deliver nothing until what it has has ended, so that the
    order of keys holds: drain a short one, or --unordered.

    \b
    Example:
      rqueue shards drain orders 3
    """  # noqa: D301
    with _sharded(target, queue) as (sharded, _):
        sharded.drain(number, order=not unordered)
        table = sharded.advance()
    _say(table, f"shard {number} of queue '{queue}' is {table.shards[number].state}", as_json)


@shards.command("forget")
@click.argument("queue")
@click.argument("number", type=int)
@yes_option
@json_option
@connection_options
@pass_target
def forget(target: Target, /, queue: str, number: int, yes: bool, as_json: bool) -> None:
    """Give up a shard whose server is gone for good.

    What it had is lost. Its keys go to all others at once, and nobody waits for its jobs any more.
    A shard that answers is refused: drain it. Empty its server before it comes back as a shard.

    \b
    Example:
      rqueue shards forget orders 3 --yes
    """  # noqa: D301
    with _sharded(target, queue) as (sharded, _):
        sharded.table()
        confirm(f"Give up shard {number} of queue '{queue}', and all jobs that it has?", yes)
        sharded.forget(number)
        table = sharded.table()
    _say(table, f"shard {number} of queue '{queue}' is gone", as_json)


@shards.command("advance")
@click.argument("queue")
@json_option
@connection_options
@pass_target
def advance(target: Target, /, queue: str, as_json: bool) -> None:
    """Do what the last change asks for and can be done now.

    Pools and clients do so by themselves; this is for shards that no pool serves.

    \b
    Example:
      rqueue shards advance orders
    """  # noqa: D301
    with _sharded(target, queue) as (sharded, _):
        table = sharded.advance()
    nothing = f"queue '{queue}': nothing is changing"
    _say(table, f"changing: {table.moving}" if table.moving else nothing, as_json)


def _say(table: ShardTable, words: str, as_json: bool) -> None:
    if not as_json:
        echo(words)
        return
    states = {str(shard.number): shard.state for shard in table.shards.values()}
    print_json(
        {
            "queue": table.queue,
            "version": table.version,
            "moving": table.moving,
            "shards": states,
        }
    )
