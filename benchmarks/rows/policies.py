"""What policies cost inside Redis: the way of a job through queues of several kinds, one by one and
a hundred at a time, beside a plain queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import ScriptQueue, script_queue
from benchmarks.rows.row import Figure, row
from benchmarks.rows.selectors import CLASSES, labelled
from rqueue.model.history_batch import pack
from rqueue.model.ids import new_id
from rqueue.model.job_limit import JobLimit
from rqueue.model.selector import selector
from rqueue.model.sort_keys import sort_key_text
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.policies import PLAIN, Kind

SIZES = (1, 100)
ALONE = 2_000  # calls one by one are as many as tell a microsecond; a batch needs more jobs
HOUR_MS = 3_600_000

Terms = Callable[[int], Mapping[str, Any]]


def _ordinary(number: int) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Way:
    """A kind of queue, its options, the terms of its jobs, and by how much the clock goes on
    between their enqueue and their delivery. refused: each job has been refused before, by another
    consumer. halved: half of the jobs displace the others, or are not stored since these are.
    select: what the consumer selects; the jobs are of so many classes then."""

    kind: Kind
    options: Mapping[str, int] = field(default_factory=dict)
    terms: Terms = _ordinary
    later_ms: int = 0
    refused: bool = False
    halved: bool = False
    select: str = ""

    def left(self, jobs: int) -> int:
        """How many of them can be pulled."""
        return jobs // 2 if self.halved else jobs


def _ways(jobs: int) -> dict[str, Way]:
    """Each with as many jobs as are measured."""
    ring, last_value = Kind.of(["ring"]), Kind.of(["last_value"])
    refusals = Kind.of(["refusals"])
    size = len(BODY)
    return {
        "plain": Way(PLAIN),
        "last value, a key for each": Way(last_value, terms=lambda n: {"key": str(n)}),
        "last value, each second displaces": Way(
            last_value, terms=lambda n: {"key": str(n % (jobs // 2))}, halved=True
        ),
        "ring, not full": Way(ring, {"ring_jobs": 2 * jobs}),
        "ring, each second displaces": Way(ring, {"ring_jobs": jobs // 2}, halved=True),
        "ring in bytes, each second displaces": Way(
            Kind.of(["ring_bytes"]), {"ring_bytes": jobs // 2 * size}, halved=True
        ),
        "bounded": Way(Kind.of(["bounded"]), {"max_jobs": 2 * jobs}),
        "bounded in bytes": Way(Kind.of(["max_bytes"]), {"max_bytes": 2 * jobs * size}),
        "hold": Way(
            Kind.of(["hold"]),
            terms=lambda n: {"delay_ms": HOUR_MS, "hold": True},
            later_ms=2 * HOUR_MS,
        ),
        "refusals, none refused": Way(refusals),
        "refusals, each refused once": Way(refusals, refused=True),
        "alerts": Way(Kind.of(["alerts"]), {"alert_depth": 10 * jobs}),
        "to the front": Way(Kind.of(["front"]), terms=lambda n: {"front": True}),
        "last in, first out": Way(Kind.of(["front"]), {"lifo": 1}),
        "unique, none of them": Way(Kind.of(["unique"])),
        "unique, a key for each": Way(
            Kind.of(["unique"]), terms=lambda n: {"unique": UniqueKey(f"k{n}").text}
        ),
        "unique, each second exists": Way(
            Kind.of(["unique"]),
            terms=lambda n: {"unique": UniqueKey(f"k{n % (jobs // 2)}").text},
            halved=True,
        ),
        "time to live": Way(Kind.of(["ttl"]), terms=lambda n: {"ttl_ms": HOUR_MS + n}),
        "groups, a key for each": Way(Kind.of(["groups"]), terms=lambda n: {"group": str(n)}),
        "selectors, none of them": Way(Kind.of(["selectors"])),
        f"selectors, all of {CLASSES} classes": Way(
            Kind.of(["selectors"]), select=f"shard < {CLASSES}"
        ),
        "sorted": Way(
            Kind.of(["sorted"]), terms=lambda n: {"sort": sort_key_text((n * 7919) % 1_000_003)}
        ),
        "shares, 100 of them": Way(Kind.of(["shares"]), terms=lambda n: {"share": f"s{n % 100}"}),
        "a limit that is not reached": Way(
            Kind.of(["limits"]), terms=lambda n: {"limits": (JobLimit("many", 100_000).text,)}
        ),
        "one live consumer": Way(Kind.of(["exclusive"]), {"live_consumers": 1}),
        "workflows, none of them": Way(Kind.of(["flows"])),
        "goes with its last consumer": Way(Kind.of(["lifetime"]), {"delete_if": 1}),
        "dead letters elsewhere": Way(Kind.of(["alternate"])),
        "schedules, none is due": Way(Kind.of(["schedules"])),
        "without dead letters": Way(Kind.of(["discarding"]), {"dead_letters": 0}),
    }


def _refuse(queue: ScriptQueue) -> None:
    """A consumer takes all jobs, refuses each, and stays."""
    term = queue.register("other", Window(1))
    while ids := queue.run(commands.pull(queue.keys, "other", term, Window(100))).jobs[::2]:
        refused = [Retried(id.decode(), 0, "elsewhere", False, b'{"reason":"no"}') for id in ids]
        queue.run(commands.settle(queue.keys, "other", term, None, retry=refused))


def _microseconds(bench: Bench, way: Way, size: int, jobs: int) -> dict[str, float]:
    """Redis's time in scripts for each job, by step: all are enqueued, then all are pulled, then
    all are settled, so many at a time."""
    select = selector(way.select) if way.select else None
    with script_queue(bench, way.kind, **way.options) as queue:
        keys, held = queue.keys, list[bytes]()
        with queue.timed() as enqueue:
            for first in range(0, jobs, size):
                numbers = range(first, min(first + size, jobs))
                puts = [
                    Put(new_id(), labelled(n) if way.select else BODY, **way.terms(n))
                    for n in numbers
                ]
                queue.run(commands.enqueue(keys, puts))
        queue.later(way.later_ms)
        if way.refused:
            _refuse(queue)
        term = queue.register("c", Window(size), select)
        with queue.timed() as pull:
            while more := queue.run(commands.pull(keys, "c", term, Window(len(held) + size))).jobs:
                held += more[::2]
        if len(held) != way.left(jobs):
            raise AssertionError(f"{len(held)} jobs came, not {way.left(jobs)}")
        with queue.timed() as settle:
            for first in range(0, len(held), size):
                ids = held[first : first + size]
                batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": "c"})
                call = commands.settle(keys, "c", term, None, ack=ids, batch=batch, rows=len(ids))
                queue.run(call)
    return {
        "enqueue": enqueue.us / jobs,
        "pull": pull.us / len(held),
        "settle": settle.us / len(held),
    }


@row("policies", "Redis time a job, by policy: enqueue, pull and settle, alone and 100 at a time")
def policies(bench: Bench) -> list[Figure]:
    """All of them in each round, one after the other, so that a noisy machine is noisy for all."""
    jobs = bench.size.of(20, 2_000, 20_000)
    times: dict[tuple[str, str, int], list[float]] = {}
    for _ in range(bench.rounds):
        for size in SIZES:
            some = min(jobs, ALONE) if size == 1 else jobs
            for what, way in _ways(some).items():
                for step, us in _microseconds(bench, way, size, some).items():
                    times.setdefault((what, step, size), []).append(us)
    return [
        Figure(f"{what}: {step}, {size} at a time", spread(us), "µs")
        for (what, step, size), us in times.items()
    ]
