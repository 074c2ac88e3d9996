"""What jobs that wait for limits cost: a pull that may take none of them, and one permit."""

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
from rqueue.protocol.policies import Kind
from rqueue.transport.connection import Connection

LIMITS = 10_000
PULLS = 500
KIND = Kind.of(["limits"])


def _pull(bench: Bench, connection: Connection, keys: QueueKeys) -> float:
    """Redis's time for a pull that finds nothing, µs."""
    term = connection.run(commands.register(keys, "idle", window=Window(9), lease_ms=600_000)).term
    before = usage(bench.redis)
    for _ in range(PULLS):
        if connection.run(commands.pull(keys, "idle", term, Window(9))).jobs:
            raise AssertionError("a job came that has no permit")
    spent = usage(bench.redis).since(before).script_us / PULLS
    connection.run(commands.unregister(keys, "idle", term))
    return spent


def _enqueue(connection: Connection, keys: QueueKeys, numbers: range) -> None:
    body = envelope("hit", "x" * 130)
    for first in range(numbers.start, numbers.stop, BATCH):
        some = range(first, min(first + BATCH, numbers.stop))
        puts = [Put(new_id(), body, limits=(f"hit=k{number % LIMITS}:1",)) for number in some]
        connection.run(commands.enqueue(keys, puts))


@row(
    "limits", "Redis time of a pull that finds only jobs without permits, to that of an empty queue"
)
def limits(bench: Bench) -> list[Figure]:
    """One job of each limit is held, the others are parked behind it; then one after the other is
    settled, and the next of its limit comes with the same call."""
    jobs = bench.size.of(2 * LIMITS, 200_000, 1_000_000)
    empty: list[float] = []
    parked: list[float] = []
    alone: list[float] = []
    for _ in range(bench.rounds):
        bench.empty()
        connection = Connection(bench.redis, timeout=120)
        with bench.queue() as queue:
            keys = queue.keys
            connection.run(commands.configure(keys, {"v": KIND.stamp}))
            nothing = _pull(bench, connection, keys)
            window = Window(LIMITS)
            call = commands.register(keys, "c", window=window, lease_ms=600_000)
            term = connection.run(call).term
            _enqueue(connection, keys, range(LIMITS))
            held: list[str] = []
            while found := connection.run(commands.pull(keys, "c", term, window)).jobs:
                held += [id_.decode() for id_ in found[::2]]
            if len(held) != LIMITS:
                raise AssertionError(f"{len(held)} jobs came, of {LIMITS}")
            _enqueue(connection, keys, range(LIMITS, jobs))
            waits = _pull(bench, connection, keys)
            before = usage(bench.redis)
            for id_ in held[:PULLS]:
                connection.run(commands.settle(keys, "c", term, window, ack=[id_]))
            one = usage(bench.redis).since(before).script_us / PULLS
        connection.close()
        empty.append(nothing)
        parked.append(waits / nothing)
        alone.append(one)
    what = f"{jobs:,} jobs wait for {LIMITS:,} limits"
    return [
        Figure("an empty queue", spread(empty), "µs"),
        Figure(
            f"{what}: a pull that finds nothing", spread(parked), "×", Target(2, 1.2, more=False)
        ),
        Figure(f"{what}: settle one, and the next of its limit comes", spread(alone), "µs"),
    ]
