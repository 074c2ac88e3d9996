"""What groups cost inside Redis: the same loop in a plain queue, in one of the kind `groups`, and
where groups are sticky."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.settling import WINDOW, microseconds
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.protocol.commands import Put
from rqueue.protocol.policies import PLAIN, Kind

KEYS, MANY = 1000, 10_000

Key = Callable[[int], str]


def _microseconds(bench: Bench, kind: Kind, key: Key, jobs: int) -> tuple[float, float]:
    numbers = [range(n, min(n + BATCH, jobs + WINDOW)) for n in range(0, jobs + WINDOW, BATCH)]
    batches = ([Put(new_id(), BODY, group=key(n)) for n in some] for some in numbers)
    return microseconds(bench, kind, batches)


@row("groups", f"Redis time a job, settle and pull of {WINDOW}: a queue with groups to a plain one")
def groups(bench: Bench) -> list[Figure]:
    """All of them in each round, one after the other, so that a noisy machine is noisy for all."""
    jobs = bench.size.of(1_000, 50_000, 1_000_000)
    kind, sticky = Kind.of(["groups"]), Kind.of(["sticky"])
    ways: dict[str, tuple[Kind, Key]] = {
        "jobs without a key": (kind, lambda number: ""),
        "each job has a key of its own": (kind, str),
        f"{MANY:,} interleaved keys, strict order": (kind, lambda number: f"k{number % MANY}"),
        f"{KEYS:,} interleaved keys, strict order": (kind, lambda number: f"k{number % KEYS}"),
        f"{KEYS:,} interleaved keys, sticky": (sticky, lambda number: f"k{number % KEYS}"),
    }
    most = (
        Target(2, 1.9, more=False),
        Target(5, 3, more=False),
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
