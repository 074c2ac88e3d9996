"""`rqueue pause` and `rqueue resume`."""

from __future__ import annotations

import click

from rqueue.cli.output import echo, json_option, print_json
from rqueue.cli.target import Target, connection_options, pass_target


@click.command()
@click.argument("queue")
@json_option
@connection_options
@pass_target
def pause(target: Target, /, queue: str, as_json: bool) -> None:
    """Deliver no more jobs of a queue.

    Jobs are still accepted, and workers finish those that they hold. It lasts until 'rqueue
    resume', through restarts of workers and server.

    \b
    Example:
      rqueue pause mail
    """  # noqa: D301
    with target.queues(queue) as (clients, _):
        changed = any(clients.each(lambda one: one.pause()))
    _say(queue, "paused", changed, as_json)


@click.command()
@click.argument("queue")
@json_option
@connection_options
@pass_target
def resume(target: Target, /, queue: str, as_json: bool) -> None:
    """Deliver a paused queue's jobs again.

    As many waiting consumers are notified as there is work for.

    \b
    Example:
      rqueue resume mail
    """  # noqa: D301
    with target.queues(queue) as (clients, _):
        changed = any(clients.each(lambda one: one.resume()))
    _say(queue, "running", changed, as_json)


def _say(queue: str, state: str, changed: bool, as_json: bool) -> None:
    if as_json:
        print_json({"queue": queue, "paused": state == "paused", "changed": changed})
    else:
        echo(f"queue '{queue}' is {state}" + ("" if changed else " (it was before)"))
