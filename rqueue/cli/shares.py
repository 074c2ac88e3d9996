"""`rqueue shares`: who takes turns in a queue, and with what weights."""

from __future__ import annotations

import click

from rqueue.cli.output import Column, echo, json_option, print_json, print_table
from rqueue.cli.target import Target, connection_options, pass_target


@click.group(no_args_is_help=True)
def shares() -> None:
    """Show the shares of a queue, and set their weights.

    A job names its share: @task(share=Share("tenant")). Shares that have ready jobs take turns,
    whatever the others have waiting.
    """


@shares.command("list")
@click.argument("queue")
@click.option(
    "--most", type=click.IntRange(1, 10_000), default=100, metavar="N", help="About so many."
)
@json_option
@connection_options
@pass_target
def list_(target: Target, /, queue: str, most: int, as_json: bool) -> None:
    """List a queue's shares: those that have ready jobs, and those with weights of their own.

    'part' is what a share gets while those that are listed have ready jobs. '*' are all shares of
    which nothing is said.

    \b
    Example:
      rqueue shares list mail
    """  # noqa: D301
    with target.queue(queue) as (client, inspector):
        inspector.require_queue(queue)
        found = client.shares.list(most)
    if as_json:
        print_json([one._asdict() for one in found])
        return
    total = sum(one.weight for one in found if one.ready)
    print_table(
        [
            Column("share"),
            Column("ready", right=True),
            Column("weight", right=True),
            Column("part", right=True),
        ],
        [
            (
                one.name or "(none)",
                one.ready,
                one.weight if one.own else f"({one.weight})",
                f"{one.weight / total:.1%}" if one.ready else "",
            )
            for one in found
        ],
        empty=f"no shares in queue '{queue}'",
    )


@shares.command("set")
@click.argument("queue")
@click.argument("share")
@click.argument("weight", type=int)
@json_option
@connection_options
@pass_target
def set_(target: Target, /, queue: str, share: str, weight: int, as_json: bool) -> None:
    """Give a share a weight, 1 to 1000, from its next delivery on; '*': all others.

    \b
    Examples:
      rqueue shares set mail acme 4
      rqueue shares set mail '*' 2
    """  # noqa: D301
    with target.queue(queue) as (client, _):
        client.shares.set(share, weight)
    _say(as_json, queue, share, weight)


@shares.command()
@click.argument("queue")
@click.argument("share")
@json_option
@connection_options
@pass_target
def reset(target: Target, /, queue: str, share: str, as_json: bool) -> None:
    """Forget the weight of a share: it has that of all others again.

    \b
    Example:
      rqueue shares reset mail acme
    """  # noqa: D301
    with target.queue(queue) as (client, inspector):
        inspector.require_queue(queue)
        client.shares.reset(share)
    _say(as_json, queue, share, None)


def _say(as_json: bool, queue: str, share: str, weight: int | None) -> None:
    if as_json:
        print_json({"queue": queue, "share": share, "weight": weight})
        return
    of = "all shares of which nothing is said" if share == "*" else f"share '{share}'"
    has = "the weight of all others" if weight is None else f"weight {weight}"
    echo(f"{of} in queue '{queue}': {has}")
