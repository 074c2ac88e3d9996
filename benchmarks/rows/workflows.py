"""What workflows cost inside Redis: the same loop in a plain queue, and where its jobs are members
of groups that another job waits for, there from the beginning or coming as a stream."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.settling import WINDOW, microseconds
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
    """All of them in each round, one after the other, so that a noisy machine is noisy for all."""
    jobs = bench.size.of(1_000, 100_000, 100_000)
    kind = Kind.of(["flows"])
    target = Target(1.5, 1, more=False)
    plain: tuple[list[float], list[float]] = [], []
    more: dict[str, tuple[list[float], list[float]]] = {}
    for _ in range(bench.rounds):
        one = microseconds(bench, PLAIN, _alone(jobs))
        returned = microseconds(bench, PLAIN, _alone(jobs), b"12345")
        for figures, found in zip(plain, one, strict=True):
            figures.append(found)
        for what, its, than in (
            ("no workflow is open", microseconds(bench, kind, _alone(jobs)), one),
            (f"one of {jobs:,} members", microseconds(bench, kind, _members(jobs, jobs, "")), one),
            (f"one of {jobs:,} in a stream", microseconds(bench, kind, _streamed(jobs)), one),
            (
                f"of {RESULTS_MAX:,} members, whose results go on",
                microseconds(bench, kind, _members(jobs, RESULTS_MAX, "all"), b"12345"),
                returned,
            ),
        ):
            of = more.setdefault(what, ([], []))
            for figures, found, plainly in zip(of, its, than, strict=True):
                figures.append(found - plainly)
    return [
        Figure("a plain queue, enqueue", spread(plain[0]), "µs"),
        *(Figure(f"more to enqueue, {what}", spread(its[0]), "µs") for what, its in more.items()),
        Figure("a plain queue", spread(plain[1]), "µs"),
        *(
            Figure(f"more, {what}", spread(its[1]), "µs", None if "results" in what else target)
            for what, its in more.items()
        ),
    ]
