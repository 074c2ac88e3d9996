"""`rqueue alerts`: when a queue came to its depth."""

from __future__ import annotations

import click

from rqueue.cli.output import clock, echo, json_option, print_line
from rqueue.cli.target import Target, client_of, connection_options, keep_asking, pass_target
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
    that is spread have alerts of their own, which name the shard.

    \b
    Examples:
      rqueue alerts orders
      rqueue alerts orders --follow --json
    """  # noqa: D301
    from rqueue.cli.shard_listener import listen

    with target.inspector() as inspector:
        parts = inspector.parts(queue)
        spread = parts.table is not None

        def show(name: str, alert: Alert) -> bool:
            if as_json:
                print_line({**({"queue": name} if spread else {}), **alert._asdict()})
            else:
                where = f"  {name}" if spread else ""
                words = f"{alert.depth} jobs  threshold {alert.threshold}"
                echo(f"{clock(alert.at_ms)}{where}  {words}")
            return True

        kept = inspector.alerts_by_queue(queue)
        for alert, name in sorted(
            ((alert, name) for name, some in kept.items() for alert in some),
            key=lambda one: one[0].at_ms,
        ):
            show(name, alert)
        last = {name: some[-1].id for name, some in kept.items() if some}
        if follow:
            keep_asking(inspector)
        if follow and spread:
            listen(
                queue,
                inspector.settings,
                lambda its, _late: its.alerts(after=last.get(its.name, "0")),
                show,
            )
        elif follow:
            client = client_of(queue, parts.found[0].client, inspector)
            for alert in client.alerts(after=last.get(queue, "0")):
                show(queue, alert)
