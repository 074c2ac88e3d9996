"""What a row of history takes of Redis's memory."""

from __future__ import annotations

import random
import time
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.rounds import spread
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.history_batch import pack
from rqueue.model.ids import digits62
from rqueue.model.job import Delivery
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import NO_OPTIONS

KEPT = 50_000_000
"""Rows of history that no row of this table lets Redis trim."""

BATCH = 100


@row("history-memory", "Redis's memory for a row of history, in batches of 100")
def history_memory(bench: Bench) -> list[Figure]:
    """Bytes of the stream, by `MEMORY USAGE`, for each of its rows: of jobs of three tasks that
    run for a random time, some of which fail, settled by hundreds. Ids of one `enqueue_many` have
    much in common; those of jobs that as many processes enqueue have nothing but the time."""
    batches = bench.size.of(3, 100, 1_000)
    apart, together = (
        [_row_bytes(bench, batches, seed, apart=which) for seed in range(bench.rounds)]
        for which in (True, False)
    )
    target = Target(45, 33, more=False)
    return [
        Figure("a row, each job enqueued by another process", spread(apart), "bytes", target),
        Figure("a row, jobs of enqueue_many", spread(together), "bytes", target),
    ]


def _row_bytes(bench: Bench, batches: int, seed: int, *, apart: bool) -> float:
    bench.empty()
    dice = random.Random(seed)

    def enqueue() -> None:
        calls = []
        for _ in range(BATCH):
            options = None
            if apart:
                ms = time.time_ns() // 1_000_000
                id_ = digits62(ms, 7) + digits62(dice.getrandbits(48), 7)
                options = NO_OPTIONS.merged(id=id_)
            calls.append(Call("weigh", ("x" * dice.randrange(200),), None, options))
        queue.enqueue_many(calls)

    with bench.queue() as queue:
        queue.configure(history_rows_max=KEPT)
        with queue.consumer(jobs=BATCH, renew=False) as consumer:
            for _ in range(batches):
                enqueue()
                held = consumer.pull()
                if len(held) != BATCH:
                    raise AssertionError(f"{len(held)} of {BATCH} jobs were acquired")
                packed = pack(_columns(held, dice))
                consumer.settle(ack=[job.id for job in held], batch=packed, rows=BATCH)
        size: Any = bench.redis.memory_usage(queue.keys.history, samples=0)
    return float(size) / (batches * BATCH)


def _columns(held: list[Delivery], dice: random.Random) -> dict[str, Any]:
    now = round(time.time() * 1000)
    begins, ends = [], []
    for _ in held:
        begins.append(now)
        now += int(dice.expovariate(1 / 8))
        ends.append(now)
    failed = [dice.random() < 0.03 for _ in held]
    return {
        "id": [job.id for job in held],
        "task": [dice.choice(("mail.send", "pdf.render", "orders.charge")) for _ in held],
        "queue": "bench",
        "level": 4,
        "outcome": ["retry" if one else "ack" for one in failed],
        "error": ["ConnectionError" if one else "" for one in failed],
        "enqueued": [begins[0] - int(dice.expovariate(1 / 500)) for _ in held],
        "acquired": begins[0],
        "started": begins,
        "finished": ends,
        "worker": "host-1:4711:1",
        "body_size": [len(job.body) for job in held],
    }
