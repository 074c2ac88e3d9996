"""`rqueue stats`: rates and latencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from rqueue.cli.output import (
    Column,
    json_option,
    print_json,
    print_line,
    print_table,
    rate,
    span,
)
from rqueue.cli.target import (
    Target,
    connection_options,
    keep_asking,
    pass_target,
    say_missing,
    say_without,
)
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.inspector import Inspector, QueueInfo, Spread, Stats, Survey

COLUMNS = [
    Column("queue"),
    *(Column(head, right=True) for head in ("ready", "oldest", "held", "dead")),
    *(Column(head, right=True) for head in ("in/s", "done/s", "fail/s")),
    *(
        Column(head, right=True)
        for head in ("wait p50", "wait p99", "run p50", "run p99", "empty in")
    ),
]


@click.command()
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--watch", "-w", is_flag=True, help="Measure again and again, until Ctrl-C.")
@click.option("--shards", is_flag=True, help="Also each shard of a queue that is spread.")
@click.option(
    "--interval", "-i", default="2s", show_default=True, metavar="DURATION", help="Between looks."
)
@json_option
@connection_options
@pass_target
def stats(
    target: Target,
    /,
    queues: tuple[str, ...],
    watch: bool,
    shards: bool,
    interval: str,
    as_json: bool,
) -> int:
    """Measure a queue's rates and latencies.

    Looks twice and shows what happened in between: jobs per second in, done and failed (retried or
    rejected; what snoozed has not failed), how long jobs waited and ran (median and 99th
    percentile, from the history), the age of the oldest ready job, and when the queue will be empty
    at this rate. Without a QUEUE: all of them.

    With --watch --json: a line per look and queue. Of a Redis Cluster all nodes are asked, and of a
    queue that is spread all its shards, for their sums; what cannot be asked is named, and the exit
    code is 4.

    \b
    Examples:
      rqueue stats
      rqueue stats default mail --watch
      rqueue stats default --interval 10s --json | jq .rates
    """  # noqa: D301
    from rqueue.model.times import parse_duration
    from rqueue.transport.key_scan import FoundQueues

    seconds = parse_duration(interval, "interval")
    if seconds <= 0:
        raise click.BadParameter("two looks need some time in between", param_hint="--interval")
    with target.inspector() as inspector:
        places = inspector.find_queues() if not queues else FoundQueues({})
        names = named_queues(inspector, list(queues) or list(places.nodes), queues, shards)
        missing: dict[str, Exception] = {}
        looks = _looks(inspector, names, seconds, missing, watch=watch)
        if as_json:
            from rqueue.cli.documents import stats_document

            for reports in looks:
                documents = [stats_document(report) for report in reports]
                if not watch:
                    print_json(documents[0] if len(queues) == 1 and not shards else documents)
                    break
                for document in documents:
                    print_line(document)
        elif watch:
            _watch(looks)
        else:
            print_table(COLUMNS, [_row(report) for report in next(looks)], empty="no queues")
        return max(say_missing(places.missing), say_without(missing))


def named_queues(
    inspector: Inspector, names: list[str], asked: Sequence[str], shards: bool
) -> list[str]:
    """The queues that are shown: of those that are spread the shards too, if asked for. Where none
    is named, shards are no queues of their own."""
    spread = inspector.spread(names)
    its = {name: [part.name for part in parts] for name, parts in spread.items()}
    inner = {one for some in its.values() for one in some}
    found = []
    for name in names:
        if asked or name not in inner:
            found += [name, *(its.get(name, []) if shards else [])]
    return list(dict.fromkeys(found)) if shards else found


def _looks(
    inspector: Inspector,
    names: list[str],
    seconds: float,
    missing: dict[str, Exception],
    *,
    watch: bool,
) -> Iterator[list[Stats]]:
    """missing: gets the shards that could not be asked."""
    import time

    from rqueue.errors import RedisUnavailable

    def survey(name: str) -> Survey | None:
        try:
            found = inspector.survey(name)
        except RedisUnavailable as error:
            if "~" not in name:
                raise
            missing[name] = error
            return None
        missing.update(found.missing)
        return found

    before = {name: survey(name) for name in inspector.each(names)}
    if watch:
        keep_asking(inspector)
    while True:
        time.sleep(seconds)
        reports: list[Stats] = []
        for name in inspector.each(names):
            first = before[name]
            if first is None:
                before[name] = survey(name)
                continue
            report, before[name] = inspector.measure(name, first)
            reports.append(report)
        # of those that were asked ahead no round trip was seen
        ping_ms = max((report.ping_ms for report in reports), default=0.0)
        yield [replace(report, ping_ms=ping_ms) for report in reports]


def _watch(looks: Iterator[list[Stats]]) -> None:
    import sys

    if not sys.stdout.isatty():
        for reports in looks:
            print_table(COLUMNS, [_row(report) for report in reports], empty="no queues")
            sys.stdout.flush()
        return
    from rich.live import Live

    from rqueue.cli.output import console, rich_table

    with Live(console=console(), auto_refresh=False) as live:
        for reports in looks:
            live.update(rich_table(COLUMNS, [_row(report) for report in reports]), refresh=True)


def _remark(info: QueueInfo) -> str:
    remarks, bound = ["paused"] if info.paused else [], info.bounded
    if bound and (bound.producers or bound.full):
        remarks.append(
            f"{many(bound.producers, 'producer')} waiting" if bound.producers else "full"
        )
    if info.shares:
        remarks.append(f"{many(info.shares, 'share')} waiting")
    if info.deferred:
        remarks.append(f"{info.deferred:,} deferred")
    if info.overdue_ms:
        remarks.append(f"schedules overdue by {span(info.overdue_ms)}")
    return f" ({', '.join(remarks)})" if remarks else ""


def _row(report: Stats) -> tuple[object, ...]:
    info, rates = report.info, report.rates

    def at(spread: Spread | None, share: str) -> str:
        return "" if spread is None else span(getattr(spread, share))

    return (
        info.name + _remark(info),
        info.ready,
        span(info.oldest_ms) if info.oldest_enqueued_ms else "",
        info.held,
        info.dead,
        rate(rates["accepted"]).removesuffix("/s"),
        rate(rates["acked"]).removesuffix("/s"),
        rate(rates["retried"] + rates["rejected"]).removesuffix("/s"),
        at(report.wait, "p50"),
        at(report.wait, "p99"),
        at(report.run, "p50"),
        at(report.run, "p99"),
        "" if report.drain_s is None else span(report.drain_s * 1000),
    )
