"""Run the demo: a server, a pool, a job per module of the standard library, a kill, a reckoning."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Call, Queue
from rqueue.demo import modules
from rqueue.demo.pool import running_pool
from rqueue.demo.reckoning import Kill, Reckoning, print_reckoning
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RQueueError
from rqueue.inspector.consumers import held_by_consumer
from rqueue.inspector.history import read_history

PROCESSES = 2
RESULT_TIMEOUT_S = 120.0


def _work(
    queue: Queue, handles: list[JobHandle[modules.Measure]], progress: Progress
) -> tuple[list[modules.Measure], Kill]:
    """Collect the results in order; half way, kill the worker that sent the latest one."""
    bar = progress.add_task("measuring modules", total=len(handles))
    results: list[modules.Measure] = []
    kill = Kill(0, 0, {})
    for number, handle in enumerate(handles):
        result = handle.result(RESULT_TIMEOUT_S)
        results.append(result)
        progress.advance(bar)
        if not kill.pid and 2 * number >= len(handles):
            kill = _kill(queue, result["pid"])
            progress.console.print(f"  killed worker process {kill.pid} with SIGKILL")
    return results, kill


def _kill(queue: Queue, pid: int) -> Kill:
    """Freeze a worker, look what each consumer holds, and kill it."""
    os.kill(pid, signal.SIGSTOP)
    held = held_by_consumer(queue.redis, queue.keys)
    at_ms = queue.counts().now
    os.kill(pid, signal.SIGKILL)
    return Kill(pid, at_ms, held)


def run(console: Console | None = None, limit: int | None = None) -> int:
    """Run the demo; exit code 0 only if every job finished and the totals are right.

    limit: only so many modules.
    """
    console = console or Console()
    paths = list(modules.library_files())[:limit]
    with tempfile.TemporaryDirectory(prefix="rqueue-demo-") as directory:
        log = Path(directory) / "pool.log"
        try:
            with EmbeddedRedis(Path(directory) / "redis", persistent=True) as server:
                version = ".".join(map(str, server.binary.version))
                console.print(
                    f"embedded server {version}, append-only file on; {PROCESSES} workers"
                )
                with (
                    Queue(modules.QUEUE, server.url) as queue,
                    running_pool(
                        server.url, modules.__name__, [modules.QUEUE], log, processes=PROCESSES
                    ),
                    Progress(
                        TextColumn("{task.description}"),
                        BarColumn(),
                        MofNCompleteColumn(),
                        TimeElapsedColumn(),
                        console=console,
                    ) as progress,
                ):
                    began = time.monotonic()
                    handles = queue.enqueue_many(Call(modules.measure, (path,)) for path in paths)
                    results, kill = _work(queue, handles, progress)
                    took = time.monotonic() - began
                    history = list(read_history(queue.redis, queue.keys))
                    counts = queue.counts()
                    alive = held_by_consumer(queue.redis, queue.keys).keys()
                    held = {
                        job for who, jobs in kill.held.items() if who not in alive for job in jobs
                    }
            console.print("checking against a plain loop over the same files ...")
            expected = [modules.measure_file(path) for path in paths]
        except (RQueueError, OSError) as error:
            console.print("[red]the demo failed:[/]", escape(str(error)), highlight=False)
            if log.exists():
                console.print(log.read_text(errors="replace")[-2000:], markup=False)
            return 1
    reckoning = Reckoning(results, expected, history, kill, held, took, counts)
    print_reckoning(console, reckoning)
    return 0 if reckoning.right else 1
