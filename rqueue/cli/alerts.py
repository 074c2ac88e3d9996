"""`rqueue alerts`: when a queue came to its depth."""

from __future__ import annotations

import click

from rqueue.cli.output import clock, echo, json_option, print_line
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.alert import Alert


@click.command()
@click.argument("queue")
@click.option("--follow", "-f", is_flag=True, help="Go on as alerts come, until Ctrl-C.")
@json_option
@connection_options
@pass_target
def alerts(target: Target, /, queue: str, follow: bool, as_json: bool) -> None:
    """Show the alerts of a queue.

    There is one where an arrival brings the queue to a number of jobs, and none until it has fallen
    below: `rqueue configure QUEUE --alert-depth N`. The last 100 are kept. Shards of a queue
    that is spread have alerts of their own: name one to follow them.

    \b
    Examples:
      rqueue alerts orders
      rqueue alerts orders --follow --json
    """  # noqa: D301
    from rqueue.errors import QueueSharded

    def show(alert: Alert) -> None:
        if as_json:
            print_line(alert._asdict())
        else:
            echo(f"{clock(alert.at_ms)}  {alert.depth} jobs  threshold {alert.threshold}")

    with target.queues(queue) as (clients, inspector):
        if follow and len(clients.clients) > 1:
            raise QueueSharded(queue)
        last = "0"
        for alert in inspector.alerts(queue):
            show(alert)
            last = alert.id
        if follow:
            for alert in clients.clients[0].alerts(after=last):
                show(alert)
