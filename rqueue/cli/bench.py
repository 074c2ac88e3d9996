"""`rqueue bench`: what this server and this machine can do."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.exit_codes import SERVER, Failure
from rqueue.cli.output import json_option, print_facts, print_json, rate, span
from rqueue.cli.progress import Counter
from rqueue.cli.target import Target, connection_options, pass_target

if TYPE_CHECKING:
    from rqueue.client._sync.queue import Queue
    from rqueue.inspector import Inspector

LOOK_S = 0.05
POOL_STOP_S = 20.0
TASK = "rqueue.noop"


@click.command()
@click.option("--jobs", "-n", default=20_000, show_default=True, metavar="N", help="To be drained.")
@click.option("--processes", default=2, show_default=True, metavar="N", help="Worker processes.")
@click.option("--singles", default=300, show_default=True, metavar="N", help="Sent one by one.")
@click.option("--timeout", default="2m", show_default=True, metavar="DURATION", help="Give up.")
@json_option
@connection_options
@pass_target
def bench(
    target: Target, /, jobs: int, processes: int, singles: int, timeout: str, as_json: bool
) -> None:
    """Measure this server with no-op jobs.

    Enqueues N jobs in batches from one process, then starts a real pool that runs them through a
    queue of their own, then sends single jobs to the idle pool and waits for each result. History
    and results are written as always. The time to drain counts from the first job's start to the
    last one's end, so the pool's start is not in it. The queue is removed afterwards.

    Server and workers share what they run on: nothing else should be busy there.

    \b
    Examples:
      rqueue bench
      rqueue bench --jobs 200000 --processes 8 --json
    """  # noqa: D301
    from rqueue.model.times import parse_duration

    if min(jobs, processes, singles) < 1:
        raise click.UsageError("--jobs, --processes and --singles are at least 1")
    deadline = time.monotonic() + parse_duration(timeout, "timeout")
    name = f"bench-{token_hex(4)}"
    with target.queue(name) as (queue, inspector):
        from rqueue.transport.server_check import server_facts

        facts = server_facts(inspector.redis)
        try:
            queue.configure(history_rows_max=2 * (jobs + singles))
            with Counter("bench", jobs, quiet=as_json) as counter:
                enqueued_s = _enqueue(queue, jobs)
                with _pool(inspector, name, processes) as pool:
                    _drain(queue, jobs, pool, deadline, counter)
                    drained_s, wait, run = _read(inspector, name)
                    alone = _singles(queue, singles, deadline)
        finally:
            _remove(inspector, name)
    report: dict[str, Any] = {
        "server": f"{facts.name} {'.'.join(map(str, facts.version))}",
        "append_only_file": facts.persistent,
        "cpus": os.cpu_count(),
        "processes": processes,
        "jobs": jobs,
        "enqueue_per_s": round(jobs / enqueued_s),
        "drain_per_s": round(jobs / drained_s),
        "run_ms": run,
        "wait_ms": wait,
        "single_ms": alone,
    }
    if as_json:
        print_json(report)
        return
    print_facts(
        {
            "server": f"{report['server']}, append-only file {'on' if facts.persistent else 'off'}",
            "machine": f"{report['cpus']} CPUs, Python {sys.version.split()[0]}",
            "enqueue": f"{rate(report['enqueue_per_s'])} from one process, in batches",
            "drain": f"{rate(report['drain_per_s'])} by {processes} processes",
            "one job": f"{span(alone['p50'])} from enqueue to result (median of {singles}),"
            f" {span(alone['p99'])} (p99), {span(alone['longest'])} (longest)",
        }
    )


def _enqueue(queue: Queue, jobs: int) -> float:
    from rqueue.client._sync.queue import Call

    began = time.perf_counter()
    queue.enqueue_many(Call(TASK) for _ in range(jobs))
    return time.perf_counter() - began


@contextlib.contextmanager
def _pool(inspector: Inspector, name: str, processes: int) -> Iterator[subprocess.Popen[bytes]]:
    """A pool as an operator would start it."""
    command = [sys.executable, "-m", "rqueue.cli", "worker", "rqueue.cli.noop", name]
    command += ["--processes", str(processes), "--quiet"]
    environment = {
        **os.environ,
        "RQUEUE_URL": inspector.settings.url or "",
        "RQUEUE_NAMESPACE": inspector.settings.namespace,
    }
    pool = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        yield pool
    finally:
        pool.terminate()
        try:
            pool.communicate(timeout=POOL_STOP_S)
        except subprocess.TimeoutExpired:
            pool.kill()
            pool.communicate()


def _drain(
    queue: Queue, jobs: int, pool: subprocess.Popen[bytes], deadline: float, counter: Counter
) -> None:
    from rqueue.protocol import commands
    from rqueue.transport.redis_client import execute

    while True:
        counts = execute(queue.redis, commands.counts(queue.keys, oldest=False), queue=queue.name)
        acked = int(counts.meta.get("acked", 0))
        counter.update(acked)
        if acked >= jobs:
            return
        if pool.poll() is not None:
            said = (pool.stderr.read() if pool.stderr else b"").decode(errors="replace")
            raise Failure(f"the pool ended by itself: {said.strip()[-500:]}", SERVER)
        if time.monotonic() > deadline:
            raise Failure(f"{jobs - acked} of {jobs} jobs are not done in time", SERVER)
        time.sleep(LOOK_S)


def _read(inspector: Inspector, name: str) -> tuple[float, dict[str, float], dict[str, float]]:
    """Seconds from the first start to the last end, and the spread of waits and runs in ms."""
    from rqueue.inspector.stats import spread, wait_of

    first, last = float("inf"), 0.0
    waits, runs = [], []
    for row in inspector.history(name):
        first, last = min(first, row["started"]), max(last, row["finished"])
        waits.append(wait_of(row))
        runs.append(row["finished"] - row["started"])
    wait, run = spread(waits), spread(runs)
    if wait is None or run is None:
        raise Failure("the pool wrote no history", SERVER)
    return max(last - first, 1) / 1000, asdict(wait), asdict(run)


def _singles(queue: Queue, count: int, deadline: float) -> dict[str, float]:
    from rqueue.inspector.stats import spread

    times = []
    for _ in range(count):
        began = time.perf_counter()
        queue.send(TASK).result(max(1.0, deadline - time.monotonic()))
        times.append((time.perf_counter() - began) * 1000)
    found = spread(times)
    assert found is not None
    return {name: round(value, 3) for name, value in asdict(found).items()}


def _remove(inspector: Inspector, name: str) -> None:
    """All keys of the queue."""
    from rqueue.protocol.commands.queue_keys import remove_keys
    from rqueue.transport.key_scan import scan_queue
    from rqueue.transport.redis_client import execute

    keys = inspector.keys(name)
    found = list(scan_queue(inspector.redis, keys))
    for start in range(0, len(found), 500):
        execute(inspector.redis, remove_keys(keys, found[start : start + 500]))
