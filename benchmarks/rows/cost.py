"""What a waiting job costs Redis in memory."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import memory
from benchmarks.rows.row import Figure, Target, row


@row("memory", "memory per waiting job, 100-byte payload")
def memory_per_job(bench: Bench) -> list[Figure]:
    """`used_memory` with them less that without. The payload is one text argument of 100 bytes."""
    found = []
    body = envelope("weigh", "x" * 100)
    for jobs in bench.size.of(0, 1, 2) * [100_000] + [bench.size.of(5_000, 200_000, 1_000_000)]:
        bench.empty()
        with bench.queue() as queue:
            before = memory(bench.redis)
            load(bench.redis, queue.keys, body, jobs)
            found.append((memory(bench.redis) - before) / jobs)
    bench.empty()
    return [
        Figure("a job", spread(found), "bytes", Target(260, 200, more=False)),
        Figure("of it the envelope and the id", spread([float(len(body) + 36)]), "bytes"),
    ]
