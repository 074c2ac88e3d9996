"""The price of waiting: workers without work, and jobs that are not due."""

from __future__ import annotations

import time

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.processes import children, cpu_seconds
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import usage
from benchmarks.rows.row import Figure, Target, row

IDLE_SECONDS = 60


@row("idle", "ten idle workers")
def idle(bench: Bench) -> list[Figure]:
    """Commands that Redis counts a second, ours for looking taken off."""
    seconds = bench.size.of(2, 10, IDLE_SECONDS)
    bench.empty()
    bench.board()
    with bench.queue() as queue, bench.pool(10) as pool:
        bench.ready(pool, queue, 10)
        before = usage(bench.redis)
        time.sleep(seconds)
        used = usage(bench.redis).since(before)
        pool.check()
    looks = used.calls.get("info", 0)
    figures = [
        Figure(
            "commands sent, all ten and their supervisor together",
            spread([max(0, used.sent() - looks) / seconds]),
            "a second",
            Target(1, 0.5, more=False),
        ),
        Figure(
            "commands Redis counted, those inside scripts too",
            spread([max(0, used.commands - looks) / seconds]),
            "a second",
        ),
        Figure("measured for", spread([float(seconds)]), "s"),
    ]
    for name, calls in sorted(used.calls.items(), key=lambda pair: -pair[1]):
        if name != "info":
            figures.append(Figure(f"of it {name}", spread([calls / seconds]), "a second"))
    return figures


@row("hold-scheduled", "holding scheduled jobs, due in a day, 2 idle workers")
def hold_scheduled(bench: Bench) -> list[Figure]:
    """CPU of Redis and of the workers with them, less that without them."""
    seconds = bench.size.of(2, 10, 30)
    jobs = bench.size.of(2_000, 100_000, 1_000_000)
    bench.empty()
    bench.board()
    redis_cpu: dict[bool, float] = {}
    pool_cpu: dict[bool, float] = {}
    queue = bench.queue()
    with queue, bench.pool(2) as pool:
        bench.ready(pool, queue, 2)
        for loaded in (False, True):
            if loaded:
                due = int((time.time() + 86_400) * 1000)
                load(bench.redis, queue.keys, envelope("hit"), jobs, f"4,@{due},0,")
                time.sleep(bench.size.of(1, 3, 5))  # tables that grew are moved in the background
                bench.ready(pool, queue, 2)
            pids = children(pool.pid)
            server, workers = cpu_seconds([bench.server_pid]), cpu_seconds(pids)
            time.sleep(seconds)
            redis_cpu[loaded] = (cpu_seconds([bench.server_pid]) - server) / seconds
            pool_cpu[loaded] = (cpu_seconds(pids) - workers) / seconds
        held = queue.counts().scheduled
    if held != jobs:
        raise AssertionError(f"{held} of {jobs} jobs are scheduled")
    more = Target(0.2, 0.1, more=False)
    return [
        Figure(
            f"Redis CPU more, for {jobs:,} jobs",
            spread([100 * (redis_cpu[True] - redis_cpu[False])]),
            "%",
            more,
        ),
        Figure(
            "workers' CPU more",
            spread([100 * (pool_cpu[True] - pool_cpu[False])]),
            "%",
            more,
        ),
        Figure("Redis CPU, empty", spread([100 * redis_cpu[False]]), "%"),
        Figure("workers' CPU, empty", spread([100 * pool_cpu[False]]), "%"),
    ]
