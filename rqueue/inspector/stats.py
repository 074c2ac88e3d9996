"""Rates and latencies of a queue: counters at two looks, and the rows of history in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

import redis

from rqueue.inspector.history import Row, read_history
from rqueue.inspector.queues import QueueInfo, queue_info
from rqueue.protocol.keys import QueueKeys

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
    """A queue between two looks.

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


def compare(first: QueueInfo, second: QueueInfo, rows: Iterable[Row], ping_ms: float) -> Stats:
    """The changes between two looks, of which `rows` are the history."""
    seconds = max(0.001, (second.now - first.now) / 1000)
    rates = {"accepted": (second.accepted - first.accepted) / seconds}
    for name, value in second.counters.items():
        rates[name] = (value - first.counters[name]) / seconds
    ran = [row for row in rows if row["started"]]
    tasks: dict[str, int] = {}
    for row in ran:
        tasks[row["task"]] = tasks.get(row["task"], 0) + 1
    left = second.ready + second.blocked
    fewer = (first.ready + first.blocked - left) / seconds
    return Stats(
        info=second,
        seconds=seconds,
        rates=rates,
        wait=spread(wait_of(row) for row in ran),
        run=spread(row["finished"] - row["started"] for row in ran),
        ping_ms=ping_ms,
        drain_s=left / fewer if fewer > 0 else None,
        tasks=dict(sorted(tasks.items(), key=lambda item: -item[1])),
    )


def measure(
    client: redis.Redis,
    keys: QueueKeys,
    interval: float = 1.0,
    wait: Callable[[float], None] = time.sleep,
    first: QueueInfo | None = None,
) -> Stats:
    """Look twice, `interval` seconds apart (or once, where an earlier look is `first`)."""
    first = first or queue_info(client, keys)
    wait(interval)
    began = time.perf_counter()
    second = queue_info(client, keys)
    ping_ms = (time.perf_counter() - began) * 1000
    rows = islice(read_history(client, keys, str(first.now)), SAMPLE_ROWS)
    return compare(first, second, rows, ping_ms)
