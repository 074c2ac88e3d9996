"""What a confirmed enqueue costs, with a replica beside the server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis

from benchmarks.apps.tasks import weigh
from benchmarks.lab.bench import Bench, Stalled
from benchmarks.lab.rounds import interleave, ratios, spread
from benchmarks.lab.server import private_server
from benchmarks.rows.row import Figure, row
from rqueue.client._sync.queue import Queue
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import NO_OPTIONS, Options

CONFIRMED = Options(replicas=1, confirm_ms=10_000)
PATIENCE_S = 60


@contextmanager
def _replica(bench: Bench) -> Iterator[None]:
    """While another server is a replica of the bench's."""
    host, _, port = bench.url.removeprefix("redis://").partition("/")[0].partition(":")
    with private_server(bench.server, aof=False) as replica:
        with redis.Redis.from_url(replica.url) as client:
            client.replicaof(host, port)
            end = time.monotonic() + PATIENCE_S
            while client.info("replication")["master_link_status"] != "up":
                if time.monotonic() > end:
                    raise Stalled(f"a replica: not within {PATIENCE_S:g} s")
                time.sleep(0.02)
        yield


@row("enqueue-confirmed", "enqueues that a replica confirms, one by one and in batches")
def enqueue_confirmed(bench: Bench) -> list[Figure]:
    """`queue.send` and `enqueue_many` with `replicas=1`, against the same without."""
    jobs = bench.size.of(50, 1_000, 4_000)

    def singles(options: Options) -> Callable[[Queue], None]:
        def enqueue(queue: Queue) -> None:
            for _ in range(jobs):
                queue.send(weigh.name, [1], options=options)

        return enqueue

    def batches(options: Options) -> Callable[[Queue], None]:
        def enqueue(queue: Queue) -> None:
            queue.enqueue_many(Call(weigh, (1,), options=options) for _ in range(5 * jobs))

        return enqueue

    def per_job(count: int, enqueue: Callable[[Queue], None]) -> float:
        bench.empty()
        with bench.queue() as queue:
            queue.send(weigh.name, [1], options=CONFIRMED)  # connected, and looked at
            begin = time.perf_counter()
            enqueue(queue)
            return (time.perf_counter() - begin) / count

    with _replica(bench):
        alone = interleave(
            bench.rounds,
            {
                "confirmed": lambda: per_job(jobs, singles(CONFIRMED)),
                "plain": lambda: per_job(jobs, singles(NO_OPTIONS)),
            },
        )
        many = interleave(
            bench.rounds,
            {
                "confirmed": lambda: per_job(5 * jobs, batches(CONFIRMED)),
                "plain": lambda: per_job(5 * jobs, batches(NO_OPTIONS)),
            },
        )
    figures = []
    for what, found in (("alone", alone), ("in batches of 250", many)):
        figures.append(Figure(f"of plain, {what}", ratios(found["confirmed"], found["plain"])))
        for how, times in found.items():
            each = spread([1e6 * one for one in times])
            figures.append(Figure(f"a job {what}, {how}", each, "µs"))
    return figures
