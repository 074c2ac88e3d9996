"""`rqueue configure`: a queue's own options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.output import json_option, print_facts, print_json, span
from rqueue.cli.target import Target, connection_options, pass_target

if TYPE_CHECKING:
    from rqueue.protocol.queue_options import DeleteIf, Expired, Overflow, SortOrder

DEFAULT = "not set: the default"

DELETE_IF = ("never", "empty", "always")
"""When a queue goes whose last consumer has left, by `delete_if`."""

EXPIRED = ("end", "dead")
"""What becomes of expired jobs, by `ttl_dead`."""

OVERFLOW = ("reject", "block")
"""What becomes of jobs that do not fit into a bounded queue, by `overflow`."""

SORT = ("ascending", "descending")
"""Which sort key goes first, by `descending`."""


def setting_in_words(name: str, value: int) -> str:
    """A setting of a queue for people, under the name that its option has."""
    if name == "ttl_dead":
        return f"expired {EXPIRED[value]}"
    if name == "delete_if":
        return f"delete if {DELETE_IF[value]}"
    if name == "ring_jobs":
        return f"ring {value}"
    if name in ("max_bytes", "ring_bytes"):
        return f"{name.replace('_', ' ')} {value:,}"
    if name == "descending":
        return f"sort {SORT[value]}"
    if name == "sticky":
        return f"sticky groups in {value} buckets"
    if name == "rebalance":
        return "rebalances" if value else "does not rebalance"
    if name == "overflow":
        return f"overflow {OVERFLOW[value]}"
    if name == "resume":
        return f"resume at {value} %"
    if name == "count_held":
        return "held jobs count" if value else "held jobs do not count"
    if name == "dead_letters":
        return "keeps dead letters" if value else "keeps no dead letters"
    if name == "lifo":
        return "last in, first out" if value else "first in, first out"
    if name == "hold":
        return "holds jobs until they are due" if value else "holds no jobs"
    if name.endswith("_ms"):
        return f"{name.removesuffix('_ms').replace('_', ' ')} {span(value)}"
    return f"{name.removesuffix('_max').replace('_', ' ')} {value}"


@click.command()
@click.argument("queue")
@click.option(
    "--priorities",
    type=int,
    metavar="N",
    help="Levels, 1 to 10 (the default). Not to be changed once jobs were there.",
)
@click.option(
    "--max-deliveries",
    type=int,
    metavar="N",
    help="Attempts of a job whose task says nothing else; default 10, 0: no limit.",
)
@click.option(
    "--max-crashes",
    type=int,
    metavar="N",
    help="Attempts that may cost a worker its process; default 3, 0: no limit.",
)
@click.option(
    "--keep", metavar="DURATION", help="How long records and results last; default 10 minutes."
)
@click.option(
    "--history-rows",
    type=int,
    metavar="N",
    help="Rows that the history keeps; default 200000, 0: none.",
)
@click.option(
    "--ttl", metavar="DURATION", help="Time to live of jobs that say nothing of it; 0: for ever."
)
@click.option("--ttl-min", metavar="DURATION", help="No job's time to live is less; 0: no bound.")
@click.option(
    "--ttl-max",
    metavar="DURATION",
    help="No job's time to live is more, and none lives for ever; 0: no bound.",
)
@click.option(
    "--expired",
    type=click.Choice(EXPIRED),
    help="Whether expired jobs end (the default) or become dead letters.",
)
@click.option(
    "--max-jobs", type=int, metavar="N", help="How many jobs may wait at the most; 0: no limit."
)
@click.option(
    "--max-bytes",
    type=int,
    metavar="N",
    help="How many bytes of envelopes may wait at the most; 0: no limit.",
)
@click.option(
    "--overflow",
    type=click.Choice(OVERFLOW),
    help="Whether jobs above that are refused (the default), or their producers wait for room.",
)
@click.option(
    "--resume",
    type=int,
    metavar="PERCENT",
    help="To how much of the limit the queue falls before they go on; default 80.",
)
@click.option(
    "--count-held/--no-count-held",
    default=None,
    help="Whether the limit counts jobs that consumers hold, too.",
)
@click.option(
    "--kind",
    metavar="KIND",
    help="plain (the default), groups: one job in flight for each group, or last_value: of the jobs"
    " of a key only the latest waits.",
)
@click.option(
    "--dead-letters/--no-dead-letters",
    default=None,
    help="Whether what fails for good becomes a dead letter, as it does by default, or just ends.",
)
@click.option(
    "--alert-depth",
    type=int,
    metavar="N",
    help="An arrival that brings the queue to so many jobs makes an alert; 0: none.",
)
@click.option("--dead-to", metavar="QUEUE", help='Where its dead letters go; "": they stay.')
@click.option("--expired-to", metavar="QUEUE", help='Where its expired jobs go; "": nowhere.')
@click.option(
    "--live-consumers", type=int, metavar="N", help="So many take jobs, others stand by; 0: all."
)
@click.option("--strict/--no-strict", default=None, help="One consumer; a second one is refused.")
@click.option(
    "--max-consumers", type=int, metavar="N", help="Consumers that the queue takes; 0: any number."
)
@click.option(
    "--delete-if",
    type=click.Choice(("never", "empty", "always")),
    help="Whether it goes when its last consumer has left.",
)
@click.option("--delete-after", metavar="DURATION", help="How long after that; default at once.")
@click.option(
    "--ring",
    type=int,
    metavar="N",
    help="Ready jobs that the queue keeps: one more displaces the oldest. 0: all.",
)
@click.option(
    "--ring-bytes",
    type=int,
    metavar="N",
    help="Bytes of ready jobs that the queue keeps: more displace the oldest. 0: all.",
)
@click.option(
    "--hold/--no-hold",
    default=None,
    help="Whether jobs that keep their places wait for their time, as they do by default.",
)
@click.option(
    "--lifo/--no-lifo",
    default=None,
    help="Whether jobs go last in, first out: each comes before all that waits in its level.",
)
@click.option(
    "--sort",
    type=click.Choice(SORT),
    help="Jobs stand by their sort keys, the least or the greatest first.",
)
@click.option(
    "--sticky",
    type=int,
    metavar="BUCKETS",
    help="A group is its consumer's until that leaves; groups fall into so many buckets.",
)
@click.option(
    "--rebalance/--no-rebalance",
    default=None,
    help="Whether all groups are free again when one more consumer comes.",
)
@json_option
@connection_options
@pass_target
def configure(
    target: Target,
    /,
    queue: str,
    priorities: int | None,
    max_deliveries: int | None,
    max_crashes: int | None,
    keep: str | None,
    history_rows: int | None,
    ttl: str | None,
    ttl_min: str | None,
    ttl_max: str | None,
    expired: Expired | None,
    max_jobs: int | None,
    max_bytes: int | None,
    overflow: Overflow | None,
    resume: int | None,
    count_held: bool | None,
    kind: str | None,
    dead_to: str | None,
    expired_to: str | None,
    live_consumers: int | None,
    strict: bool | None,
    max_consumers: int | None,
    delete_if: DeleteIf | None,
    delete_after: str | None,
    ring: int | None,
    ring_bytes: int | None,
    hold: bool | None,
    lifo: bool | None,
    sort: SortOrder | None,
    sticky: int | None,
    rebalance: bool | None,
    dead_letters: bool | None,
    alert_depth: int | None,
    as_json: bool,
) -> None:
    """Set a queue's own options, and show them.

    They hold for all clients and workers, from now on, also for a queue that has no jobs yet.
    Without an option nothing is changed.

    \b
    Examples:
      rqueue configure mail
      rqueue configure mail --max-deliveries 5 --keep 1h
      rqueue configure quotes --ttl 30s --ttl-max 5m --expired dead
      rqueue configure accounts --kind groups
      rqueue configure ledger --live-consumers 1
      rqueue configure orders --dead-to orders-dead
      rqueue configure images --max-jobs 10000 --overflow block
      rqueue configure deadlines --sort ascending
      rqueue configure previews --lifo
      rqueue configure sessions --sticky 1024 --rebalance
    """  # noqa: D301
    given: dict[str, Any] = {
        "priorities": priorities,
        "max_deliveries": max_deliveries,
        "max_crashes": max_crashes,
        "keep": keep,
        "history_rows_max": history_rows,
        "ttl": ttl,
        "ttl_min": ttl_min,
        "ttl_max": ttl_max,
        "expired": expired,
        "max_jobs": max_jobs,
        "max_bytes": max_bytes,
        "overflow": overflow,
        "resume": resume,
        "count_held": count_held,
        "kind": kind,
        "dead_to": dead_to,
        "expired_to": expired_to,
        "live_consumers": live_consumers,
        "strict": strict,
        "max_consumers": max_consumers,
        "delete_if": delete_if,
        "delete_after": delete_after,
        "ring": ring,
        "ring_bytes": ring_bytes,
        "hold": hold,
        "lifo": lifo,
        "sort": sort,
        "sticky": sticky,
        "rebalance": rebalance,
        "dead_letters": dead_letters,
        "alert_depth": alert_depth,
    }
    nothing = all(one is None for one in given.values())
    with target.queues(queue, new=not nothing) as (clients, inspector):
        if not nothing:
            clients.each(lambda one: one.configure(**given))
        info = inspector.survey(queue).whole
    settings, targets = info.settings, info.targets
    if as_json:
        print_json({"queue": queue, **settings, **targets})
        return

    def lasts(name: str) -> str:
        return DEFAULT if name not in settings else span(settings[name])

    def yes_or_no(name: str) -> str:
        return DEFAULT if name not in settings else "yes" if settings[name] else "no"

    print_facts(
        {
            "queue": queue,
            "priorities": settings.get("priorities", DEFAULT),
            "max deliveries": settings.get("max_deliveries", DEFAULT),
            "max crashes": settings.get("max_crashes", DEFAULT),
            "keep": lasts("keep_ms"),
            "history rows": settings.get("history_rows_max", DEFAULT),
            "ttl": lasts("ttl_ms"),
            "ttl min": lasts("ttl_min_ms"),
            "ttl max": lasts("ttl_max_ms"),
            "expired": EXPIRED[settings["ttl_dead"]] if "ttl_dead" in settings else DEFAULT,
            "live consumers": settings.get("live_consumers", DEFAULT),
            "strict": yes_or_no("strict"),
            "delete if": DELETE_IF[settings["delete_if"]] if "delete_if" in settings else DEFAULT,
            "delete after": lasts("delete_after_ms"),
            "max consumers": settings.get("max_consumers", DEFAULT),
            "ring": settings.get("ring_jobs", DEFAULT),
            "ring bytes": settings.get("ring_bytes", DEFAULT),
            "sort": SORT[settings["descending"]] if "descending" in settings else DEFAULT,
            "sticky": settings.get("sticky", DEFAULT),
            "rebalance": yes_or_no("rebalance"),
            "dead letters": yes_or_no("dead_letters"),
            "alert depth": settings.get("alert_depth", DEFAULT),
            "dead to": targets.get("dead_to", DEFAULT),
            "expired to": targets.get("expired_to", DEFAULT),
            "max jobs": settings.get("max_jobs", DEFAULT),
            "max bytes": settings.get("max_bytes", DEFAULT),
            "overflow": OVERFLOW[settings["overflow"]] if "overflow" in settings else DEFAULT,
            "resume": f"{settings['resume']} %" if "resume" in settings else DEFAULT,
            "count held": yes_or_no("count_held"),
            "hold": yes_or_no("hold"),
            "lifo": yes_or_no("lifo"),
        }
    )
