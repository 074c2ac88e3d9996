"""Enqueueing: many in one call, one by one, and in the background."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from benchmarks.apps.tasks import weigh
from benchmarks.floors import commands
from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope
from benchmarks.lab.rounds import interleave, ratios, spread
from benchmarks.lab.server import usage
from benchmarks.rows.row import Figure, Target, row
from rqueue.client._sync.putter import BackgroundPuts
from rqueue.client._sync.queue import Queue
from rqueue.model.ids import new_id
from rqueue.protocol.job_packer import Call

TEXT = "x" * 100
SAME_BYTES = new_id().encode() + envelope("weigh", TEXT)
"""The client sends this for a job: its id and its envelope."""


def _rate(bench: Bench, jobs: int, enqueue: Callable[[Queue], None]) -> float:
    bench.empty()
    with bench.queue() as queue:
        queue.counts()  # connected, and the server knows some scripts
        begin = time.perf_counter()
        enqueue(queue)
        rate = jobs / (time.perf_counter() - begin)
        stored = queue.counts().ready
    if stored != jobs:
        raise AssertionError(f"{stored} of {jobs} jobs were stored")
    return rate


def _against(
    bench: Bench, ours: Callable[[], float], bare: Callable[[], float], target: Target, name: str
) -> list[Figure]:
    ours(), bare()  # the first time also teaches scripts and warms caches
    found = interleave(bench.rounds, {"ours": ours, "bare": bare})
    return [
        Figure(f"of {name}", ratios(found["ours"], found["bare"]), target=target),
        Figure("rqueue", spread(found["ours"]), "jobs/s"),
        Figure(name, spread(found["bare"]), "jobs/s"),
    ]


@row("enqueue-many", "enqueue_many, one process")
def enqueue_many(bench: Bench) -> list[Figure]:
    """Calls of a task with a 100-byte argument: checked, packed and stored."""
    jobs = bench.size.of(1_000, 50_000, 100_000)

    spent: list[float] = []

    def ours() -> float:
        before = usage(bench.redis)
        rate = _rate(bench, jobs, lambda queue: _ignore(queue.enqueue_many(_calls(jobs))))
        spent.append(usage(bench.redis).since(before).cpu / jobs * 1e6)
        return rate

    figures = _against(
        bench,
        ours,
        lambda: commands.lpush_pipelined(bench.redis, SAME_BYTES, jobs),
        Target(0.6, 0.8),
        "bare pipelined LPUSH",
    )
    return [*figures, Figure("Redis CPU per job", spread(spent), "µs")]


def _calls(jobs: int) -> Iterator[Call]:
    return (Call(weigh, (TEXT,)) for _ in range(jobs))


def _ignore(_: object) -> None:
    return None


@row("background-puts", "background puts, one process")
def background_puts(bench: Bench) -> list[Figure]:
    """`put` returns at once; the time counts until the last one is confirmed."""
    jobs = bench.size.of(1_000, 50_000, 100_000)

    def puts(queue: Queue) -> None:
        with BackgroundPuts(queue) as background:
            put = background.put
            for _ in range(jobs):
                put(weigh, TEXT)
            background.flush()

    return _against(
        bench,
        lambda: _rate(bench, jobs, puts),
        lambda: commands.lpush_pipelined(bench.redis, SAME_BYTES, jobs),
        Target(0.4, 0.6),
        "bare pipelined LPUSH",
    )


@row("enqueue-one", "single enqueue, a round trip each")
def enqueue_one(bench: Bench) -> list[Figure]:
    """`queue.enqueue(task, ...)` against `client.lpush(...)`."""
    jobs = bench.size.of(200, 5_000, 20_000)

    def singles(queue: Queue) -> None:
        enqueue = queue.enqueue
        for _ in range(jobs):
            enqueue(weigh, TEXT)

    return _against(
        bench,
        lambda: _rate(bench, jobs, singles),
        lambda: commands.lpush(bench.redis, SAME_BYTES, jobs),
        Target(0.8, 0.9),
        "bare LPUSH round trips",
    )
