"""What groups cost inside Redis: the same loop in a plain queue, in one of the kind `groups`, and
where groups are sticky."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, envelope
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import usage
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.history_batch import pack
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.transport.connection import Connection

WINDOW = 100
KEYS = 1000

Key = Callable[[int], str]


def _microseconds(bench: Bench, kind: Kind, key: Key, jobs: int) -> tuple[float, float]:
    """Redis's time in scripts for each job: to enqueue it, and to settle it and pull the next."""
    bench.empty()
    body = envelope("hit", "x" * 130)
    connection = Connection(bench.redis, timeout=120)
    with bench.queue() as queue:
        keys = queue.keys
        connection.run(commands.configure(keys, {"v": kind.stamp}))
        before = usage(bench.redis)
        for first in range(0, jobs + WINDOW, BATCH):
            numbers = range(first, min(first + BATCH, jobs + WINDOW))
            puts = [Put(new_id(), body, group=key(number)) for number in numbers]
            connection.run(commands.enqueue(keys, puts))
        enqueued = usage(bench.redis).since(before)
        window = Window(WINDOW)
        term = connection.run(commands.register(keys, "c", window=window, lease_ms=600_000)).term
        found = connection.run(commands.pull(keys, "c", term, window)).jobs
        before, done = usage(bench.redis), 0
        while done < jobs:
            ids = found[::2]
            if len(ids) != WINDOW:
                raise AssertionError(f"{len(ids)} jobs came, of {WINDOW}")
            batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": "c"})
            call = commands.settle(keys, "c", term, window, ack=ids, batch=batch, rows=WINDOW)
            found = connection.run(call).jobs
            done += WINDOW
        settled = usage(bench.redis).since(before)
    connection.close()
    return enqueued.script_us / (jobs + WINDOW), settled.script_us / jobs


@row("groups", f"Redis time a job, settle and pull of {WINDOW}: a queue with groups to a plain one")
def groups(bench: Bench) -> list[Figure]:
    """All of them in each round, one after the other, so that a noisy machine is noisy for all."""
    jobs = bench.size.of(1_000, 50_000, 200_000)
    kind, sticky = Kind.of(["groups"]), Kind.of(["sticky"])
    ways: dict[str, tuple[Kind, Key]] = {
        "jobs without a key": (kind, lambda number: ""),
        "each job has a key of its own": (kind, str),
        f"{KEYS:,} interleaved keys, strict order": (kind, lambda number: f"k{number % KEYS}"),
        f"{KEYS:,} interleaved keys, sticky": (sticky, lambda number: f"k{number % KEYS}"),
    }
    most = (
        Target(2, 1.9, more=False),
        Target(5, 3, more=False),
        Target(5, 3, more=False),
        Target(10, 5, more=False),
    )
    plain: list[float] = []
    settled: dict[str, list[float]] = {what: [] for what in ways}
    enqueued: dict[str, list[float]] = {what: [] for what in ways}
    for _ in range(bench.rounds):
        first, one = _microseconds(bench, PLAIN, lambda number: "", jobs)
        plain.append(one)
        for what, (its_kind, key) in ways.items():
            its_first, its = _microseconds(bench, its_kind, key, jobs)
            settled[what].append(its / one)
            enqueued[what].append(its_first / first)
    return [
        Figure("a plain queue", spread(plain), "µs"),
        *(
            Figure(f"{what}: settle and pull", spread(settled[what]), "×", target)
            for what, target in zip(ways, most, strict=True)
        ),
        *(Figure(f"{what}: enqueue", spread(enqueued[what]), "×") for what in ways),
    ]
