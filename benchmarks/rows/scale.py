"""Does a script's time depend on how many jobs wait? It must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.rounds import percentile, spread
from benchmarks.rows.row import Figure, Target, row
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue

Step = Callable[[], Any]


class _Consumer:
    """One of everything that concerns a single job, on one queue."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.consumer: Consumer = queue.consumer(jobs=1, lease=600, renew=False)
        self.consumer.register()
        self.consumer.interest(0)

    def close(self) -> None:
        self.consumer.close()

    def steps(self) -> dict[str, Step]:
        """In this order: each leaves what the next needs."""
        queue, consumer = self.queue, self.consumer
        ids: list[str] = []

        def enqueue() -> None:
            ids.append(queue.send("hit").id)

        def pull() -> None:
            consumer._state.window = consumer.window._replace(jobs=1)
            (job,) = consumer.pull()
            self.job = job

        def release() -> None:
            consumer.settle(release=[self.job])

        def settle() -> None:
            consumer.settle(ack=[self.job])

        def cancel() -> None:
            queue.cancel(ids.pop())

        def schedule() -> None:
            ids.append(queue.send("hit", options=Later).id)

        return {
            "enqueue": enqueue,
            "pull": pull,
            "release": release,
            "pull again": pull,
            "settle": settle,
            "schedule": schedule,
            "cancel (scheduled)": cancel,
            "enqueue again": enqueue,
            "state": lambda: queue.job(ids[-1]).state(),
            "cancel (waiting)": cancel,
            "counts": queue.counts,
        }


def _options() -> Any:
    from rqueue.tasks.options import NO_OPTIONS

    return NO_OPTIONS.merged(delay_ms=3_600_000)


Later = _options()


def _took(bench: Bench, step: Step) -> int:
    """Microseconds that Redis itself measured for the scripts of one step."""
    bench.redis.slowlog_reset()
    step()
    entries: Any = bench.redis.slowlog_get(16)
    return sum(
        entry["duration"] for entry in entries if entry["command"][:4].upper() in (b"EVAL", b"FCAL")
    )


@row("scale", "script time with millions of jobs waiting")
def scale(bench: Bench) -> list[Figure]:
    """Single-job scripts on a full queue and on an empty one, in turn, as Redis's slow log saw
    them."""
    jobs = bench.size.of(10_000, 1_000_000, 10_000_000)
    count = bench.size.of(10, 300, 1_000)
    bench.empty()
    full, empty = bench.queue("full"), bench.queue("empty")
    load(bench.redis, full.keys, envelope("hit"), jobs)
    bench.redis.config_set("slowlog-log-slower-than", 0)
    bench.redis.config_set("slowlog-max-len", 32)
    consumers = {"full": _Consumer(full), "empty": _Consumer(empty)}
    steps = {name: consumer.steps() for name, consumer in consumers.items()}
    times: dict[str, dict[str, list[int]]] = {
        name: {step: [] for step in mine} for name, mine in steps.items()
    }
    try:
        for turn in range(count + 20):
            for step in steps["full"]:
                for name in ("full", "empty"):
                    took = _took(bench, steps[name][step])
                    if turn >= 20:
                        times[name][step].append(took)
        for consumer in consumers.values():
            consumer.close()
    finally:
        bench.redis.config_set("slowlog-log-slower-than", 10_000)
        full.close()
        empty.close()
        bench.empty()
    figures = []
    worst = 0.0
    for step in steps["full"]:
        p99 = {name: percentile(times[name][step], 99) for name in times}
        p50 = {name: percentile(times[name][step], 50) for name in times}
        ratio = p99["full"] / max(1.0, p99["empty"])
        if step != "counts":
            worst = max(worst, ratio)
        text = (
            f"{step}: p99 {p99['full']:g} µs, empty {p99['empty']:g}; "
            f"p50 {p50['full']:g}, empty {p50['empty']:g}"
        )
        figures.append(Figure(text, spread([ratio])))
    target = Target(3, 1.5, more=False)
    head = Figure(f"worst p99, {jobs:,} jobs against none", spread([worst]), target=target)
    return [head, *figures]
