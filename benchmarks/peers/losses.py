"""Jobs lost when a worker is killed half way, by rqueue and by each peer.

Numbered jobs of 0.1 s wait in a queue. A worker with two processes runs them. When a third is done,
all its processes are killed with SIGKILL, as a power cut or the kernel would. A new worker is
started, and it gets as long as one slot of each process takes for everything, twice, plus
`patience`. Then: how many jobs never ran to their end, and how many were started twice. The jobs
sleep and everybody has a server of their own, so all are watched at the same time.

The peers' reactions are their documented behaviour, and several bring jobs back later than
anybody waits here; `NOTES` says what.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from benchmarks.apps import board as marks
from benchmarks.lab.bench import Bench, Stalled
from benchmarks.lab.loading import envelope, load_each
from benchmarks.lab.processes import Died, Program, rqueue_pool
from benchmarks.lab.rounds import spread
from benchmarks.peers import running
from benchmarks.peers.catalogue import Peer
from benchmarks.peers.running import PeerFailed
from benchmarks.rows.row import Figure, Outcome, Target

JOB_S = 0.1

NOTES = {
    "dramatiq": "comes back once 60 s without a heartbeat are over, by upkeep that one call in a "
    "thousand does",
    "huey": "popped before it runs: what ran is gone for good",
    "rq": "the job that ran is marked failed by upkeep, every 600 s, and not run again by itself",
    "rq-no-fork": "as rq",
    "celery": "acknowledged before the run by default: what ran is gone for good; what was "
    "prefetched comes back after the visibility timeout, 1 h",
    "taskiq": "claimed by others after 10 min",
    "saq": "swept every 60 s once over its timeout of 10 s; run again only if it has retries",
    "arq": "runs again when its in-progress key ends: job timeout + 10 s, 310 s by default",
    "streaq": "claimed by others after 60 s",
}


@dataclass(frozen=True)
class Loss:
    """running: jobs under way when the worker was killed. unfinished: that never ran to their end.
    twice: that were started again. back_s: seconds from the kill to the last job's end."""

    running: int
    unfinished: int
    twice: int
    back_s: float


def lose(
    bench: Bench, jobs: int, patience: float, fill: Callable[[], None], start: Callable[[], Program]
) -> Loss:
    """Fill, start, kill everything at a third, start again, count."""
    bench.empty()
    board = bench.board(marks=jobs)
    fill()
    with start() as first:
        bench.watch(first, lambda: board.total() >= jobs // 3, 60, "a third of the jobs")
        first.kill()
    killed = time.monotonic()
    starts, ends = board.column(marks.STARTS, jobs), board.column(marks.ENDS, jobs)
    under_way = sum(s > e for s, e in zip(starts, ends, strict=True))
    wait = jobs * JOB_S + patience
    with start() as second:
        with suppress(Stalled):  # what is missing then is counted
            bench.watch(second, lambda: all(board.column(marks.ENDS, jobs)), wait, "", 0.1)
        starts, ends = board.column(marks.STARTS, jobs), board.column(marks.ENDS, jobs)
        last = max(board.column(marks.ENDED, jobs)) / 1e9
    return Loss(under_way, sum(e == 0 for e in ends), sum(s > 1 for s in starts), last - killed)


def losses(bench: Bench, peers: Sequence[Peer]) -> list[Outcome]:
    """One row each, rqueue first."""
    jobs = bench.size.of(24, 240, 240)
    patience = float(bench.size.of(5, 75, 75))
    with ThreadPoolExecutor(len(peers) + 1) as threads:
        found = [threads.submit(_watch, bench, peer, jobs, patience) for peer in (None, *peers)]
        return [one.result() for one in found]


def _watch(bench: Bench, peer: Peer | None, jobs: int, patience: float) -> Outcome:
    with Bench(bench.size.name, 1, server=bench.server, aof=bench.aof) as own:
        if peer is None:
            return _outcome(
                "rqueue",
                "with a lease of 5 s",
                own,
                jobs,
                patience,
                partial(_fill_rqueue, own, jobs),
                partial(rqueue_pool, own.url, own.board_path, "bench", 2, "--lease", "5s"),
            )
        extra = str(JOB_S)
        return _outcome(
            peer.name,
            NOTES.get(peer.name, ""),
            own,
            jobs,
            patience,
            partial(_fill, own, peer, jobs, extra),
            partial(running.work, own, peer, 2),
        )


def _fill_rqueue(bench: Bench, jobs: int) -> None:
    with bench.queue() as queue:
        bodies = [envelope("work", number, JOB_S) for number in range(jobs)]
        load_each(bench.redis, queue.keys, bodies)


def _fill(bench: Bench, peer: Peer, jobs: int, extra: str) -> None:
    running.fill(bench, peer, "work", jobs, extra)


def _outcome(
    name: str,
    note: str,
    bench: Bench,
    jobs: int,
    patience: float,
    fill: Callable[[], None],
    start: Callable[[], Program],
) -> Outcome:
    what = f"{name}: killed after a third of {jobs} jobs" + (f" ({note})" if note else "")
    outcome = Outcome(f"losses-{name}", what)
    begin = time.perf_counter()
    try:
        loss = lose(bench, jobs, patience, fill, start)
    except (PeerFailed, Stalled, Died) as error:
        outcome.failure = str(error)
    else:
        none = Target(0, 0, more=False) if name == "rqueue" else None
        outcome.figures = [
            Figure(
                f"jobs that never finished, {patience:g} s patience",
                spread([float(loss.unfinished)]),
                "jobs",
                none,
            ),
            Figure("under way when it was killed", spread([float(loss.running)]), "jobs"),
            Figure("started again", spread([float(loss.twice)]), "jobs"),
        ]
        if loss.back_s > 0:
            last = Figure("from the kill to the last end", spread([loss.back_s]), "s")
            outcome.figures.append(last)
    outcome.seconds = time.perf_counter() - begin
    return outcome
