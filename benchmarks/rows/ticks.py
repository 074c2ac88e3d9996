"""What the ticks of periodic jobs cost inside Redis: the step that pulls enqueues what is due."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope
from benchmarks.lab.rounds import ratios, spread
from benchmarks.lab.server import usage
from benchmarks.rows.row import Figure, row
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.connection import Connection

SCHEDULES = 100
EVERY_S = 60


def _pulled(bench: Bench, connection: Connection, keys: QueueKeys) -> float:
    """Redis's time in scripts until a consumer that comes has pulled all that is due, µs."""
    spent, count = 0.0, 0
    window = Window(SCHEDULES)
    term = connection.run(commands.register(keys, "c", window=window, lease_ms=10**9)).term
    while count < SCHEDULES:
        before = usage(bench.redis)
        found = connection.run(commands.pull(keys, "c", term, window)).jobs[::2]
        spent += usage(bench.redis).since(before).script_us
        if not found:
            raise AssertionError(f"{count} jobs came, of {SCHEDULES}")
        connection.run(commands.settle(keys, "c", term, None, ack=found))
        count += len(found)
    connection.run(commands.unregister(keys, "c", term))
    return spent


@row("ticks", "Redis time of a tick and the pull of its job, to a job that a client enqueues")
def ticks(bench: Bench) -> list[Figure]:
    """A hundred schedules tick at one instant, again and again; between two of these a client
    enqueues as many jobs, one in each call."""
    times = bench.size.of(2, 20, 100)
    body = envelope("hit", "x" * 130)
    ticked: list[float] = []
    sent: list[float] = []
    for _ in range(bench.rounds):
        bench.empty()
        connection = Connection(bench.redis, timeout=120)
        with bench.queue() as queue:
            keys = queue.keys
            for number in range(SCHEDULES):
                queue.schedules.set(f"s{number}", "hit", ["x" * 130], every=EVERY_S)
            # they were made one after the other, and tick so from then on
            bench.redis.hincrby(keys.meta, "clock", 500 * EVERY_S)
            its, others = 0.0, 0.0
            for _ in range(times):
                bench.redis.hincrby(keys.meta, "clock", 1000 * EVERY_S)
                its += _pulled(bench, connection, keys)
                before = usage(bench.redis)
                for _ in range(SCHEDULES):
                    connection.run(commands.enqueue(keys, [Put(new_id(), body)]))
                others += usage(bench.redis).since(before).script_us
                others += _pulled(bench, connection, keys)
            ticked.append(its / times / SCHEDULES)
            sent.append(others / times / SCHEDULES)
        connection.close()
    return [
        Figure("a tick, to a job that a client enqueues", ratios(ticked, sent)),
        Figure("a tick, and the pull of its job", spread(ticked), "µs"),
        Figure("a job that a client enqueues, and its pull", spread(sent), "µs"),
    ]
