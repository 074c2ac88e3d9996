"""What it costs that a job keeps what it has done."""

from __future__ import annotations

from itertools import count

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import script_queue
from benchmarks.rows.row import Figure, row
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window

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
        with script_queue(bench) as queue:
            keys = queue.keys
            queue.run(commands.enqueue(keys, [Put("job", BODY)]))
            term = queue.register("c", Window(1))
            queue.run(commands.pull(keys, "c", term, Window(1)))
            for size, found in said.items():
                with queue.timed() as spent:
                    for _ in range(times):
                        text = f"{next(numbers)}".rjust(size, "x")
                        kept = queue.run(commands.keep_steps(keys, "c", term, "job", 0, text))
                        if kept is None:
                            raise AssertionError("the job is not held")
                found.append(spent.us / times)
    return [Figure(f"{size:,} bytes", spread(found), "µs") for size, found in said.items()]
