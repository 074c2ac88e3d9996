"""Rates and latencies of a queue: counters at two looks, and the rows of history in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from rqueue.inspector.history import Row, read_history
from rqueue.inspector.parts import Part, Parts
from rqueue.inspector.queues import QueueInfo, Survey, survey

SAMPLE_ROWS = 100_000
"""Rows of history that one report reads at the most."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Times of some jobs in ms."""

    jobs: int
    p50: float
    p90: float
    p99: float
    longest: float


@dataclass(frozen=True, slots=True)
class Stats:
    """A queue between two looks; of one that is spread all that both of them saw.

    `rates`: per second, of the counters (accepted, acked, retried, rejected, ...). `wait`: from
    enqueued (or due) to started; `run`: from started to finished; None where no job ran in between.
    `ping_ms`: one round trip to the server. `drain_s`: seconds until the waiting jobs are gone at
    this rate, None if they do not become fewer.
    """

    info: QueueInfo
    seconds: float
    rates: dict[str, float]
    wait: Spread | None
    run: Spread | None
    ping_ms: float
    drain_s: float | None
    tasks: dict[str, int] = field(default_factory=dict)


def spread(times: Iterable[float]) -> Spread | None:
    """Percentiles of `times`, in their unit; None for none."""
    ordered = sorted(times)
    if not ordered:
        return None

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return Spread(len(ordered), at(0.5), at(0.9), at(0.99), ordered[-1])


def wait_of(row: Row) -> float:
    """ms that a job waited: from when it could have run to when it did."""
    ready_ms: int = max(row["enqueued"], row["due"])
    started_ms: int = row["started"]
    return max(0, started_ms - ready_ms)


def compare(first: Survey, second: Survey, rows: Iterable[Row], ping_ms: float) -> Stats:
    """The changes between two looks, of which `rows` are the history."""
    seconds = max(0.001, (second.whole.now - first.whole.now) / 1000)
    both = [(first.each[name], its) for name, its in second.each.items() if name in first.each]
    rates = {"accepted": sum(after.accepted - before.accepted for before, after in both) / seconds}
    for name in second.whole.counters:
        grown = sum(after.counters[name] - before.counters[name] for before, after in both)
        rates[name] = grown / seconds
    ran = [row for row in rows if row["started"]]
    tasks: dict[str, int] = {}
    for row in ran:
        tasks[row["task"]] = tasks.get(row["task"], 0) + 1
    left = second.whole.ready + second.whole.blocked
    before = sum(its.ready + its.blocked for its, _ in both)
    fewer = (before - sum(its.ready + its.blocked for _, its in both)) / seconds
    return Stats(
        info=second.whole,
        seconds=seconds,
        rates=rates,
        wait=spread(wait_of(row) for row in ran),
        run=spread(row["finished"] - row["started"] for row in ran),
        ping_ms=ping_ms,
        drain_s=left / fewer if fewer > 0 else None,
        tasks=dict(sorted(tasks.items(), key=lambda item: -item[1])),
    )


def measure(
    parts: Parts,
    interval: float = 1.0,
    wait: Callable[[float], None] = time.sleep,
    first: Survey | None = None,
) -> tuple[Stats, Survey]:
    """Look twice, `interval` seconds apart (or once, where an earlier look is `first`); also what
    the second one saw."""
    first = first or survey(parts)
    wait(interval)
    began = time.perf_counter()
    second = survey(parts)
    ping_ms = (time.perf_counter() - began) * 1000 / max(1, len(second.each))

    def since(part: Part) -> list[Row]:
        known = first.each.get(part.name)
        if known is None:
            return []
        rows = read_history(part.client, part.keys, str(known.now))
        return list(islice(rows, SAMPLE_ROWS // len(second.each)))

    some, _ = parts.each(since)
    rows = [row for its in some.values() for row in its]
    return compare(first, second, rows, ping_ms), second
