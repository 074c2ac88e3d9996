"""What jobs of shares cost: in batches and one by one, with one share and with many."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, envelope
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import usage
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.transport.connection import Connection

KIND = Kind.of(["shares"])
MANY = 10_000
"""Shares of which each has jobs."""


def _drain(
    bench: Bench, connection: Connection, keys: QueueKeys, shares: int, window: Window, jobs: int
) -> float:
    """Redis's time for a pull of a job and its settle, of jobs that wait, µs."""
    body = envelope("hit", "x" * 130)
    waiting = max(jobs, 2 * shares)
    term = connection.run(commands.register(keys, "c", window=window, lease_ms=600_000)).term
    for first in range(0, waiting, BATCH):
        puts = [
            Put(new_id(), body, share=f"s{number % shares}" if shares else "")
            for number in range(first, min(first + BATCH, waiting))
        ]
        connection.run(commands.enqueue(keys, puts))
    before, done, count = usage(bench.redis), list[str](), 0
    while count < jobs:
        found = connection.run(commands.settle(keys, "c", term, window, ack=done)).jobs
        done = [id_.decode() for id_ in found[::2]]
        count += len(done)
    spent = usage(bench.redis).since(before).script_us / count
    connection.run(commands.unregister(keys, "c", term))
    connection.run(commands.purge(keys, 500))
    return spent


@row("shares", "Redis time of a job of a share, to that of one in a plain queue")
def shares(bench: Bench) -> list[Figure]:
    """Jobs that wait are pulled and acked, in batches and one by one: of a plain queue, of one
    share, of a hundred, and of ten thousand."""
    batches: dict[int, list[float]] = {0: [], 1: [], 100: [], MANY: []}
    singles: dict[int, list[float]] = {0: [], 1: [], 100: [], MANY: []}
    many = bench.size.of(300, MANY, MANY)
    for _ in range(bench.rounds):
        for number in batches:
            bench.empty()
            connection = Connection(bench.redis, timeout=120)
            with bench.queue() as queue:
                stamp = KIND.stamp if number else PLAIN.stamp
                connection.run(commands.configure(queue.keys, {"v": stamp}))
                its, jobs = min(number, many), bench.size.of(500, 10_000, 50_000)
                batches[number].append(
                    _drain(bench, connection, queue.keys, its, Window(100), jobs)
                )
            bench.empty()
            with bench.queue() as queue:
                connection.run(commands.configure(queue.keys, {"v": stamp}))
                jobs = bench.size.of(100, 2_000, 10_000)
                singles[number].append(_drain(bench, connection, queue.keys, its, Window(1), jobs))
            connection.close()

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
