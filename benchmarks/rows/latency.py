"""Latency with an idle pool: until a job starts, and until the caller has its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from benchmarks.apps.tasks import echo, stamp
from benchmarks.floors import wakeup
from benchmarks.lab.bench import Bench
from benchmarks.lab.processes import module
from benchmarks.lab.rounds import percentile, ratios, spread
from benchmarks.rows.row import Figure, Target, row

PAUSE_S = 0.003
"""Between two samples, so that the worker waits again."""


def _figures(
    what: str,
    ours: list[list[float]],
    bare: list[list[float]],
    targets: Mapping[int, Target | None],
) -> list[Figure]:
    figures = []
    for percent, target in targets.items():
        above = [percentile(block, percent) for block in ours]
        below = [percentile(block, percent) for block in bare]
        figures.append(Figure(f"p{percent} of {what}", ratios(above, below), target=target))
        figures.append(Figure(f"rqueue p{percent}", spread([1e6 * v for v in above]), "µs"))
        figures.append(Figure(f"bare p{percent}", spread([1e6 * v for v in below]), "µs"))
    return figures


def _block(count: int, sample: Callable[[int], float], first: int = 0) -> list[float]:
    found = []
    for number in range(first, first + count):
        found.append(sample(number))
        time.sleep(PAUSE_S)
    return found


@row("start-latency", "enqueue → job starts, idle pool")
def start_latency(bench: Bench) -> list[Figure]:
    """Blocks of samples, ours and bare in turn; percentiles within a block, ratios between them."""
    count = bench.size.of(10, 100, 300)
    rounds = max(bench.rounds, bench.size.of(1, 5, 10))
    board = bench.board(marks=2 * count * (rounds + 1))
    bench.empty()
    ours: list[list[float]] = []
    bare: list[list[float]] = []
    queue = bench.queue()

    def enqueue(number: int) -> float:
        begin = time.monotonic_ns()
        queue.enqueue(stamp, number)
        return wakeup.heard(board, number, begin)

    with (
        queue,
        bench.pool(2) as pool,
        module("benchmarks.floors.wakeup", [bench.url], bench.board_path),
    ):
        bench.ready(pool, queue, 2)
        half = count * (rounds + 1)
        for turn in range(rounds + 1):
            first = turn * count
            mine = _block(count, enqueue, first)
            its = _block(
                count, lambda number: wakeup.one_way(bench.redis, board, number), half + first
            )
            if turn:  # the first one warms up
                ours.append(mine)
                bare.append(its)
    targets = {50: Target(1.3, 1.1, more=False), 99: Target(2.0, 1.1, more=False)}
    return _figures("the bare BRPOP wake-up", ours, bare, targets)


@row("result-latency", "enqueue → the caller has the result")
def result_latency(bench: Bench) -> list[Figure]:
    """`enqueue(...).result()` against a BRPOP there and back."""
    count = bench.size.of(10, 100, 300)
    rounds = max(bench.rounds, bench.size.of(1, 5, 10))
    bench.empty()
    bench.board()
    ours: list[list[float]] = []
    bare: list[list[float]] = []
    queue = bench.queue()

    def call(number: int) -> float:
        begin = time.perf_counter()
        answer = queue.enqueue(echo, number).result(timeout=5)
        took = time.perf_counter() - begin
        if answer != number:
            raise AssertionError(f"the result of {number} was {answer}")
        return took

    with (
        queue,
        bench.pool(2) as pool,
        module("benchmarks.floors.wakeup", [bench.url], bench.board_path),
    ):
        bench.ready(pool, queue, 2)
        for turn in range(rounds + 1):
            mine = _block(count, call)
            its = _block(count, lambda n: wakeup.there_and_back(bench.redis, n))
            if turn:
                ours.append(mine)
                bare.append(its)
    targets: dict[int, Target | None] = {50: Target(1.5, 1.2, more=False), 99: None}
    return _figures("bare BRPOP there and back", ours, bare, targets)
