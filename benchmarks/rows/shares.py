"""What jobs of shares cost: in batches and one by one, with one share and with many."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import script_queue
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.policies import PLAIN, Kind

KIND = Kind.of(["shares"])
MANY = 10_000
"""Shares of which each has jobs."""


def _drain(bench: Bench, shares: int, window: Window, jobs: int) -> float:
    """Redis's time for a pull of a job and its settle, of jobs that wait, µs. shares: that they are
    of; 0: the queue is a plain one."""
    with script_queue(bench, KIND if shares else PLAIN) as queue:
        keys, waiting = queue.keys, max(jobs, 2 * shares)
        term, done, count = queue.register("c", window), list[str](), 0
        for first in range(0, waiting, BATCH):
            puts = [
                Put(new_id(), BODY, share=f"s{number % shares}" if shares else "")
                for number in range(first, min(first + BATCH, waiting))
            ]
            queue.run(commands.enqueue(keys, puts))
        with queue.timed() as spent:
            while count < jobs:
                found = queue.run(commands.settle(keys, "c", term, window, ack=done)).jobs
                done = [id_.decode() for id_ in found[::2]]
                count += len(done)
    return spent.us / count


@row("shares", "Redis time of a job of a share, to that of one in a plain queue")
def shares(bench: Bench) -> list[Figure]:
    """Jobs that wait are pulled and acked, in batches and one by one: of a plain queue, of one
    share, of a hundred, and of ten thousand."""
    batches: dict[int, list[float]] = {0: [], 1: [], 100: [], MANY: []}
    singles: dict[int, list[float]] = {0: [], 1: [], 100: [], MANY: []}
    many = bench.size.of(300, MANY, MANY)
    for _ in range(bench.rounds):
        for number in batches:
            its = min(number, many)
            jobs = bench.size.of(500, 10_000, 50_000)
            batches[number].append(_drain(bench, its, Window(100), jobs))
            jobs = bench.size.of(100, 2_000, 10_000)
            singles[number].append(_drain(bench, its, Window(1), jobs))

    def times(found: dict[int, list[float]], number: int) -> list[float]:
        return [one / plain for one, plain in zip(found[number], found[0], strict=True)]

    most = Target(12, 1.3, more=False)
    return [
        Figure("a job of a plain queue, in batches", spread(batches[0]), "µs"),
        Figure("of one share", spread(times(batches, 1)), "×", Target(3, 1.3, more=False)),
        Figure("of a hundred shares", spread(times(batches, 100)), "×", most),
        Figure("of ten thousand shares", spread(times(batches, MANY)), "×", most),
        Figure("a job of a plain queue, one by one", spread(singles[0]), "µs"),
        Figure("of one share, one by one", spread(times(singles, 1)), "×", most),
        Figure("of a hundred, one by one", spread(times(singles, 100)), "×", most),
        Figure("of ten thousand, one by one", spread(times(singles, MANY)), "×", most),
    ]
