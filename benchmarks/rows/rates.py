"""What jobs of a rate cost: to pull while it has tokens, and a pull that finds none."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, envelope
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import usage
from benchmarks.rows.limits import KIND, PULLS
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.connection import Connection

PLENTY, NONE = "@hit:999999999/1000+999999999*1", "@hit:1/900000000+1*1"


def _drain(bench: Bench, connection: Connection, keys: QueueKeys, limits: tuple[str, ...]) -> float:
    """Redis's time for a job that is enqueued, pulled and acked in batches, µs."""
    body = envelope("hit", "x" * 130)
    window = Window(BATCH)
    term = connection.run(commands.register(keys, "c", window=window, lease_ms=600_000)).term
    jobs = bench.size.of(2_000, 20_000, 100_000)
    before = usage(bench.redis)
    for first in range(0, jobs, BATCH):
        puts = [Put(new_id(), body, limits=limits) for _ in range(min(BATCH, jobs - first))]
        connection.run(commands.enqueue(keys, puts))
    done: list[str] = []
    while True:
        found = connection.run(commands.settle(keys, "c", term, window, ack=done)).jobs
        if not (done := [id_.decode() for id_ in found[::2]]):
            break
    spent = usage(bench.redis).since(before).script_us / jobs
    connection.run(commands.unregister(keys, "c", term))
    return spent


@row("rates", "Redis time of a job of a rate that has tokens, to that of one that names none")
def rates(bench: Bench) -> list[Figure]:
    """Jobs in batches, without a limit, with a rate that is not used up, and parked behind one that
    is."""
    plain: list[float] = []
    rated: list[float] = []
    parked: list[float] = []
    for _ in range(bench.rounds):
        bench.empty()
        connection = Connection(bench.redis, timeout=120)
        with bench.queue() as queue:
            keys = queue.keys
            connection.run(commands.configure(keys, {"v": KIND.stamp}))
            nothing = _drain(bench, connection, keys, ())
            plain.append(nothing)
            rated.append(_drain(bench, connection, keys, (PLENTY,)) / nothing)
            window = Window(9)
            term = connection.run(
                commands.register(keys, "idle", window=window, lease_ms=600_000)
            ).term
            body = envelope("hit", "x" * 130)
            for _ in range(bench.size.of(20, 200, 1_000)):
                puts = [Put(new_id(), body, limits=(NONE,)) for _ in range(BATCH)]
                connection.run(commands.enqueue(keys, puts))
            connection.run(commands.pull(keys, "idle", term, window))
            before = usage(bench.redis)
            for _ in range(PULLS):
                connection.run(commands.pull(keys, "idle", term, window))
            parked.append(usage(bench.redis).since(before).script_us / PULLS)
        connection.close()
    return [
        Figure("a job without a limit", spread(plain), "µs"),
        Figure("a job of a rate that has tokens", spread(rated), "×", Target(6, 1.3, more=False)),
        Figure("a pull while all jobs wait for tokens", spread(parked), "µs"),
    ]
