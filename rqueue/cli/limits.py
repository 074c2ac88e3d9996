"""`rqueue limits`: how many jobs that name a limit run at a time."""

from __future__ import annotations

import click

from rqueue.cli.output import Column, echo, json_option, print_json, print_table
from rqueue.cli.target import Target, connection_options, pass_target

_KEY = click.option("--key", metavar="KEY", default="", help="Of this key, not of all.")


@click.group(no_args_is_help=True)
def limits() -> None:
    """Show and set how many jobs of a limit run at a time.

    A task names its limits: @task(limit=Concurrency(5, key="tenant")). What is set here goes before
    that, until it is reset.
    """


@limits.command("list")
@click.argument("queue")
@json_option
@connection_options
@pass_target
def list_(target: Target, /, queue: str, as_json: bool) -> None:
    """List a queue's limits.

    'out' are jobs that may be taken or run, 'waiting' those that wait for a permit. 'most' is what
    was set here; without it each job says how many.

    \b
    Example:
      rqueue limits list mail
    """  # noqa: D301
    with target.queue(queue) as (client, inspector):
        inspector.require_queue(queue)
        found = client.limits.list()
    if as_json:
        print_json([one._asdict() for one in found])
        return
    print_table(
        [
            Column("limit"),
            Column("key"),
            Column("most", right=True),
            Column("out", right=True),
            Column("waiting", right=True),
        ],
        [
            (one.name, one.key, "" if one.most is None else one.most, one.out, one.waiting)
            for one in found
        ],
        empty=f"no limits in queue '{queue}'",
    )


@limits.command("set")
@click.argument("queue")
@click.argument("name")
@click.argument("most", type=int)
@_KEY
@json_option
@connection_options
@pass_target
def set_(target: Target, /, queue: str, name: str, most: int, key: str, as_json: bool) -> None:
    """Let a limit allow MOST jobs at a time; 0: none.

    What runs goes on where the limit is lower; jobs that wait get their permits at once where it is
    higher.

    \b
    Examples:
      rqueue limits set mail crm 2
      rqueue limits set mail crm 20 --key acme
    """  # noqa: D301
    with target.queue(queue) as (client, _):
        client.limits.set(name, most, key=key)
    _say(as_json, queue, name, key, most)


@limits.command()
@click.argument("queue")
@click.argument("name")
@_KEY
@json_option
@connection_options
@pass_target
def reset(target: Target, /, queue: str, name: str, key: str, as_json: bool) -> None:
    """Forget what was set for a limit: its jobs say how many.

    \b
    Example:
      rqueue limits reset mail crm --key acme
    """  # noqa: D301
    with target.queue(queue) as (client, inspector):
        inspector.require_queue(queue)
        client.limits.reset(name, key=key)
    _say(as_json, queue, name, key, None)


def _say(as_json: bool, queue: str, name: str, key: str, most: int | None) -> None:
    if as_json:
        print_json({"queue": queue, "limit": name, "key": key, "most": most})
        return
    of = f"limit '{name}' of key '{key}'" if key else f"limit '{name}'"
    says = "allows what its jobs say" if most is None else f"allows {most}"
    echo(f"{of} in queue '{queue}' {says}")
