"""The price of a job in Redis: memory while it waits and after its end, CPU when it comes alone."""

from __future__ import annotations

import time

from benchmarks.apps.tasks import stamp
from benchmarks.floors.wakeup import heard
from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import memory, usage
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import ID_CHARACTERS


@row("memory", "memory per waiting job, 100-byte payload")
def memory_per_job(bench: Bench) -> list[Figure]:
    """`used_memory` with them less that without. The payload is one text argument of 100 bytes."""
    found = []
    body = envelope("weigh", "x" * 100)
    for jobs in bench.size.of(0, 1, 2) * [100_000] + [bench.size.of(5_000, 200_000, 1_000_000)]:
        bench.empty()
        with bench.queue() as queue:
            load(bench.redis, queue.keys, body, 1)  # Redis has the script
            before = memory(bench.redis)
            load(bench.redis, queue.keys, body, jobs)
            found.append((memory(bench.redis) - before) / jobs)
    # Valkey 8 and later keep a hash's field and value in one piece of memory
    most = Target(222, 200, more=False) if bench.valkey else Target(250, 222, more=False)
    ended = _ended(bench, bench.size.of(2_000, 50_000, 100_000))
    bench.empty()
    return [
        Figure("a job", spread(found), "bytes", most),
        Figure(
            "of it the envelope and the id", spread([float(len(body) + ID_CHARACTERS)]), "bytes"
        ),
        Figure("a job that ended: its record and its row of history", spread([ended]), "bytes"),
    ]


def _ended(bench: Bench, jobs: int) -> float:
    bench.empty()
    board = bench.board()
    with bench.queue() as queue, bench.pool(1) as pool:
        bench.ready(pool, queue, 1)
        before = memory(bench.redis)
        load(bench.redis, queue.keys, envelope("hit"), jobs)
        bench.watch(pool, lambda: board.total() >= jobs, 60, f"{jobs} no-op jobs")
        bench.watch(pool, lambda: queue.counts().held == 0, 5, "the last jobs settled")
        return (memory(bench.redis) - before) / jobs


@row("cost-alone", "Redis CPU for a job that comes alone: enqueue, direct delivery, settle")
def cost_alone(bench: Bench) -> list[Figure]:
    """Every job finds an idle pool: no batch shares its costs."""
    jobs = bench.size.of(50, 500, 2_000)
    found, sent = [], []
    for _ in range(bench.rounds):
        bench.empty()
        board = bench.board(marks=jobs)
        with bench.queue() as queue, bench.pool(2) as pool:
            bench.ready(pool, queue, 2)
            before = usage(bench.redis)
            for number in range(jobs):
                begin = time.monotonic_ns()
                queue.enqueue(stamp, number)
                heard(board, number, begin)
            used = usage(bench.redis).since(before)
        found.append(used.cpu / jobs * 1e6)
        sent.append(used.commands / jobs)
    return [
        Figure("Redis CPU", spread(found), "µs"),
        Figure("commands, those inside scripts too", spread(sent), "a job"),
    ]
