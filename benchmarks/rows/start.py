"""From the command line to the first job."""

from __future__ import annotations

import sys
import time

from benchmarks.apps import board as marks
from benchmarks.lab.bench import Bench
from benchmarks.lab.processes import Program
from benchmarks.lab.rounds import interleave, ratios, spread
from benchmarks.rows.row import Figure, Target, row


def _pool(bench: Bench) -> float:
    bench.empty()
    board = bench.board(marks=1)
    with bench.queue() as queue:
        queue.send("stamp", (0,))
        begin = time.monotonic_ns()
        with bench.pool(2) as pool:
            bench.watch(pool, lambda: board.total() >= 1, 30, "the first job", 0.005)
    return (board.mark(0, marks.STARTED) - begin) / 1e9


def _bare() -> float:
    """An interpreter that imports the client library, and ends."""
    begin = time.monotonic_ns()
    with Program([sys.executable, "-c", "import redis, hiredis, orjson"], {}) as program:
        program.process.wait(30)
        return (time.monotonic_ns() - begin) / 1e9


@row("start", "start of a pool of 2 until the first job runs")
def start(bench: Bench) -> list[Figure]:
    """The application imports nothing heavy."""
    _pool(bench)
    rounds = max(bench.rounds, bench.size.of(1, 5, 10))
    found = interleave(rounds, {"ours": lambda: _pool(bench), "bare": _bare})
    return [
        Figure("start to first job", spread(found["ours"]), "s", Target(0.5, 0.3, more=False)),
        Figure("of a bare Python that imports redis", ratios(found["ours"], found["bare"])),
        Figure("bare Python that imports redis", spread(found["bare"]), "s"),
    ]
