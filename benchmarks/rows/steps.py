"""What it costs that a job keeps what it has done."""

from __future__ import annotations

from itertools import count

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import usage
from benchmarks.rows.row import Figure, row
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.transport.connection import Connection

KEPT = (1, 100, 10_000)
"""Bytes that a job has kept."""


@row("steps", "Redis time of a durable step: what it has done is kept in the job's value")
def steps(bench: Bench) -> list[Figure]:
    """A job that is held keeps so many bytes again and again, as after each of its steps. A job
    without steps makes no such call."""
    times = bench.size.of(50, 2_000, 10_000)
    said: dict[int, list[float]] = {size: [] for size in KEPT}
    numbers = count()
    for _ in range(bench.rounds):
        bench.empty()
        connection = Connection(bench.redis, timeout=120)
        with bench.queue() as queue:
            keys = queue.keys
            put = Put("job", envelope("hit", "x" * 130))
            connection.run(commands.enqueue(keys, [put]))
            call = commands.register(keys, "c", window=Window(1), lease_ms=600_000)
            term = connection.run(call).term
            connection.run(commands.pull(keys, "c", term, Window(1)))
            for size, found in said.items():
                before = usage(bench.redis)
                for _ in range(times):
                    text = f"{next(numbers)}".rjust(size, "x")
                    kept = connection.run(commands.keep_steps(keys, "c", term, "job", 0, text))
                    if kept is None:
                        raise AssertionError("the job is not held")
                found.append(usage(bench.redis).since(before).script_us / times)
        connection.close()
    return [Figure(f"{size:,} bytes", spread(found), "µs") for size, found in said.items()]
