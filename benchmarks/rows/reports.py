"""What it costs that jobs report how far they are, and that they are watched."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from time import perf_counter
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import usage
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
    bench.empty()
    connection = Connection(bench.redis, timeout=120)
    found = {"Python, current_job().progress(...)": _python(connection, 1_000 * count)}
    with bench.queue() as queue:
        keys = queue.keys
        body = envelope("hit", "x" * 130)
        ids = [new_id() for _ in range(HELD)]
        connection.run(commands.enqueue(keys, [Put(id, body) for id in ids]))
        call = commands.register(keys, "c", window=Window(HELD), lease_ms=600_000)
        term = connection.run(call).term
        connection.run(commands.pull(keys, "c", term, Window(HELD)))
        every = [JobReport(id, 1, packed((3, 10, "pages"))) for id in ids]
        report = commands.report(keys, "c", term, every[:1])

        def timed(what: str, calls: Sequence[commands.ScriptCall[Any]], jobs: int = 1) -> None:
            for call in calls:  # the scripts are there
                connection.run(call)
            before = usage(bench.redis)
            for _ in repeat(None, count):
                for call in calls:
                    connection.run(call)
            found[what] = usage(bench.redis).since(before).script_us / count / jobs

        timed("Redis, a report of one job", [report])
        timed("Redis, a job, where 100 report", [commands.report(keys, "c", term, every)], HELD)
        timed("Redis, a report that a watcher hears", [
            report, commands.watch_on(keys, ids[0]), commands.watch(keys, ids[0]),
        ])  # fmt: skip
        timed("Redis, a look of a watcher", [commands.watch(keys, ids[0])])
        settled = {}
        for watched in (False, True):
            if watched:
                connection.run(commands.watch(keys, ids[0]))
            settled[watched] = _settles(bench, connection, keys, count)
        found["Redis, settle and pull of a job, nobody watches"] = settled[False]
        found["the same, where another job is watched"] = settled[True]
    connection.close()
    return found


def _python(connection: Connection, count: int) -> float:
    """A report that takes the place of one that is not sent yet."""
    consumer = ConsumerState(QueueKeys("bench"))
    consumer.unsettled[b"x"] = b"1,1;[]"
    job = JobContext(Delivery("x", b"1,1;[]"), "t", "bench")
    job._reports = Reports(consumer, _Silent(connection))
    begun = perf_counter()
    for number in range(count):
        job.progress(number, count, "pages")
    return 1e6 * (perf_counter() - begun) / count


class _Silent(Reporter):
    """Sends nothing."""

    def tell(self, source: object) -> None:
        """There is something to be sent."""


def _settles(bench: Bench, connection: Connection, keys: QueueKeys, count: int) -> float:
    """Of a consumer beside, with batches of 100."""
    body = envelope("hit", "x" * 130)
    window = Window(HELD)
    rounds = max(2, count // 50)
    for _ in range(rounds + 1):
        connection.run(commands.enqueue(keys, [Put(new_id(), body) for _ in range(HELD)]))
    call = commands.register(keys, new_id(), window=window, lease_ms=600_000)
    name = call.args[0]
    term = connection.run(call).term
    jobs = connection.run(commands.pull(keys, str(name), term, window)).jobs
    before = usage(bench.redis)
    for _ in range(rounds):
        ids = jobs[::2]
        batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": "c"})
        jobs = connection.run(
            commands.settle(keys, str(name), term, window, ack=ids, batch=batch, rows=HELD)
        ).jobs
    us = usage(bench.redis).since(before).script_us / (rounds * HELD)
    ids = jobs[::2]
    batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": "c"})
    connection.run(commands.settle(keys, str(name), term, None, ack=ids, batch=batch, rows=HELD))
    return us
