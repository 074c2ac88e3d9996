"""What it costs that jobs report how far they are, and that they are watched."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from time import perf_counter
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import ScriptQueue, script_queue
from benchmarks.rows.row import Figure, row
from rqueue.model.history_batch import pack
from rqueue.model.ids import new_id
from rqueue.model.job import Delivery
from rqueue.model.progress import packed
from rqueue.protocol import commands
from rqueue.protocol.commands import JobReport, Put, Window
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.context import JobContext
from rqueue.transport.connection import Connection
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.reports import Reports

HELD = 100


@row("reports", "jobs that report how far they are, and a watcher of each")
def reports(bench: Bench) -> list[Figure]:
    """A process reports for 100 jobs; then one job of 100 is watched while the others end."""
    count = bench.size.of(20, 1_000, 5_000)
    said: dict[str, list[float]] = {}
    for _ in range(bench.rounds):
        for what, one in _microseconds(bench, count).items():
            said.setdefault(what, []).append(one)
    return [Figure(what, spread(found), "µs") for what, found in said.items()]


def _microseconds(bench: Bench, count: int) -> dict[str, float]:
    found: dict[str, float] = {}
    with script_queue(bench) as queue:
        found["Python, current_job().progress(...)"] = _python(bench, 1_000 * count)
        keys = queue.keys
        ids = [new_id() for _ in range(HELD)]
        queue.run(commands.enqueue(keys, [Put(id, BODY) for id in ids]))
        term = queue.register("c", Window(HELD))
        queue.run(commands.pull(keys, "c", term, Window(HELD)))
        every = [JobReport(id, 1, packed((3, 10, "pages"))) for id in ids]
        report = commands.report(keys, "c", term, every[:1])

        def timed(what: str, calls: Sequence[commands.ScriptCall[Any]], jobs: int = 1) -> None:
            for call in calls:  # the scripts are there
                queue.run(call)
            with queue.timed() as spent:
                for _ in repeat(None, count):
                    for call in calls:
                        queue.run(call)
            found[what] = spent.us / count / jobs

        timed("Redis, a report of one job", [report])
        timed("Redis, a job, where 100 report", [commands.report(keys, "c", term, every)], HELD)
        timed("Redis, a report that a watcher hears", [
            report, commands.watch_on(keys, ids[0]), commands.watch(keys, ids[0]),
        ])  # fmt: skip
        timed("Redis, a look of a watcher", [commands.watch(keys, ids[0])])
        settled = {}
        for watched in (False, True):
            if watched:
                queue.run(commands.watch(keys, ids[0]))
            settled[watched] = _settles(queue, count)
        found["Redis, settle and pull of a job, nobody watches"] = settled[False]
        found["the same, where another job is watched"] = settled[True]
    return found


def _python(bench: Bench, count: int) -> float:
    """A report that takes the place of one that is not sent yet."""
    consumer = ConsumerState(QueueKeys("bench"))
    consumer.unsettled[b"x"] = b"1,1;[]"
    job = JobContext(Delivery("x", b"1,1;[]"), "t", "bench")
    job._reports = Reports(consumer, _Silent(Connection(bench.redis)))
    begun = perf_counter()
    for number in range(count):
        job.progress(number, count, "pages")
    return 1e6 * (perf_counter() - begun) / count


class _Silent(Reporter):
    """Sends nothing."""

    def tell(self, source: object) -> None:
        """There is something to be sent."""


def _settles(queue: ScriptQueue, count: int) -> float:
    """Of a consumer beside, with batches of 100."""
    keys, name, window = queue.keys, new_id(), Window(HELD)
    rounds = max(2, count // 50)
    for _ in range(rounds + 1):
        queue.run(commands.enqueue(keys, [Put(new_id(), BODY) for _ in range(HELD)]))
    term = queue.register(name, window)
    jobs = queue.run(commands.pull(keys, name, term, window)).jobs

    def settled(window: Window | None) -> list[bytes]:
        ids = jobs[::2]
        batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": "c"})
        call = commands.settle(keys, name, term, window, ack=ids, batch=batch, rows=HELD)
        return queue.run(call).jobs

    with queue.timed() as spent:
        for _ in range(rounds):
            jobs = settled(window)
    settled(None)
    return spent.us / (rounds * HELD)
