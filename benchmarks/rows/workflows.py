"""What workflows cost inside Redis: the same loop in a plain queue, and where its jobs are members
of groups that another job waits for, there from the beginning or coming as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.settling import WINDOW, Side, by_turns
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.model.parents import RESULTS_MAX, Parents
from rqueue.protocol.commands import Put
from rqueue.protocol.policies import PLAIN, Kind


def _alone(jobs: int) -> Iterator[list[Put]]:
    for first in range(0, jobs, BATCH):
        yield [Put(new_id(), BODY) for _ in range(first, min(first + BATCH, jobs))]


def _members(jobs: int, most: int, takes: str) -> Iterator[list[Put]]:
    """So many jobs, in groups of at most `most`, each group behind a job that waits for it."""
    for start in range(0, jobs, most):
        root, size = new_id(), min(most, jobs - start)
        waits = Parents(size, "results" if takes else "nothing").text
        puts = [Put(root, BODY, waits=waits)]
        puts += [Put(f"{root}.{place}", BODY, counts=True) for place in range(size)]
        for first in range(0, len(puts), BATCH):
            yield puts[first : first + BATCH]


def _streamed(jobs: int) -> Iterator[list[Put]]:
    """So many jobs that come to one which waits for them, and for more."""
    root = new_id()
    yield [Put(root, BODY, waits=Parents(0, streamed=True).text)]
    for first in range(0, jobs, BATCH):
        places = range(first, min(first + BATCH, jobs))
        yield [Put(f"{root}.{place}", BODY, counts=True) for place in places]


@row(
    "workflows",
    f"Redis time a job, enqueue in batches of {BATCH:,}, settle and pull of {WINDOW}: members of"
    " workflows, plain jobs",
)
def workflows(bench: Bench) -> list[Figure]:
    """The queues take turns of a few calls; of what one costs more than the plain queue the median
    over all turns counts, since others run on the machine too."""
    jobs = bench.size.of(5_000, 100_000, 100_000)
    kind = Kind.of(["flows"])
    target = Target(1.5, 1, more=False)
    plain, results = "a plain queue", "a plain queue that keeps results"
    found: dict[str, tuple[list[float], list[float]]] = {}
    more: dict[str, tuple[list[float], list[float]]] = {}
    for _ in range(bench.rounds):
        sides = {
            plain: Side(PLAIN, _alone(jobs)),
            results: Side(PLAIN, _alone(jobs), b"12345"),
            "no workflow is open": Side(kind, _alone(jobs)),
            f"one of {jobs:,} members": Side(kind, _members(jobs, jobs, "")),
            f"one of {jobs:,} in a stream": Side(kind, _streamed(jobs)),
            f"of {RESULTS_MAX:,} members, whose results go on": Side(
                kind, _members(jobs, RESULTS_MAX, "all"), b"12345"
            ),
        }
        turns = by_turns(bench, sides)
        for name, its in turns.items():
            than = turns[results if sides[name].result else plain]
            for step in range(2):
                found.setdefault(name, ([], []))[step].append(median(its[step]))
                pairs = zip(its[step], than[step], strict=False)
                more.setdefault(name, ([], []))[step].append(median(a - b for a, b in pairs))
    names = [name for name in more if name not in (plain, results)]
    return [
        Figure(f"{plain}, enqueue", spread(found[plain][0]), "µs"),
        *(Figure(f"more to enqueue, {name}", spread(more[name][0]), "µs") for name in names),
        Figure(plain, spread(found[plain][1]), "µs"),
        *(
            Figure(
                f"more, {name}", spread(more[name][1]), "µs", None if "results" in name else target
            )
            for name in names
        ),
    ]
