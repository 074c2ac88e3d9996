"""Jobs that are due at one instant."""

from __future__ import annotations

import time

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.rounds import ratios, spread
from benchmarks.rows.row import Figure, Target, row

AHEAD_S = 2.0


def _burst(bench: Bench, jobs: int, *, scheduled: bool) -> tuple[float, float]:
    """Ms that the first job was late, and jobs a second from the first to the last."""
    bench.empty()
    board = bench.board()
    with bench.queue() as queue, bench.pool(2) as pool:
        bench.ready(pool, queue, 2)
        begin = time.monotonic_ns()
        if scheduled:
            seconds, micros = bench.redis.time()
            due_ms = int((seconds + micros / 1e6 + AHEAD_S) * 1000)
            begin += int(due_ms * 1e6) - (seconds * 10**9 + micros * 1000)
            load(bench.redis, queue.keys, envelope("hit"), jobs, f"4,@{due_ms},0,")
            if time.monotonic_ns() > begin:
                raise AssertionError("loading took longer than there was time")
        else:
            queue.pause()  # all of them are there at one instant here too
            load(bench.redis, queue.keys, envelope("hit"), jobs)
            begin = time.monotonic_ns()
            queue.resume()
        bench.watch(pool, lambda: board.total() >= jobs, 30, f"{jobs} jobs")
    return (board.first() - begin) / 1e6, (jobs - 1) / board.span()


@row("due-at-once", "jobs due at one instant, 2 processes")
def due_at_once(bench: Bench) -> list[Figure]:
    """How late the first one is, and how fast they go, against as many that are simply enqueued."""
    jobs = bench.size.of(500, 5_000, 5_000)
    late: list[float] = []
    rates: list[float] = []
    plain: list[float] = []
    for _ in range(bench.rounds):
        ms, rate = _burst(bench, jobs, scheduled=True)
        late.append(ms)
        rates.append(rate)
        plain.append(_burst(bench, jobs, scheduled=False)[1])
    return [
        Figure("the first one is late by", spread(late), "ms", Target(10, 3, more=False)),
        Figure(
            "rate, of as many that were ready at one instant",
            ratios(rates, plain),
            target=Target(0.8, 1.0),
        ),
        Figure("rate", spread(rates), "jobs/s"),
    ]
