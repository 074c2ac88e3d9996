"""Jobs that take time: how much of the workers' time they get, and who waits behind a long one."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.apps import board as marks
from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load, load_each
from benchmarks.lab.rounds import spread
from benchmarks.rows.row import Figure, Target, row

ASYNC_S, ASYNC_SLOTS = 0.1, 100
SHORT_S = 0.001


def _busy_share(bench: Bench, jobs: int) -> float:
    bench.empty()
    board = bench.board()
    with bench.queue() as queue:
        load(bench.redis, queue.keys, envelope("doze", 0.001), jobs)
        with bench.pool(2) as pool:
            bench.watch(pool, lambda: board.total() >= jobs, 60, f"{jobs} jobs of 1 ms")
    return 100 * board.busy() / (2 * board.span())


@row("short-jobs", "1 ms jobs, 2 processes, 1 slot each")
def short_jobs(bench: Bench) -> list[Figure]:
    """The share of the time, from the first start to the last end, that is spent inside jobs.

    The jobs sleep, so that the cores are free for Redis and the bench.
    """
    jobs = bench.size.of(200, 5_000, 10_000)
    shares = [_busy_share(bench, jobs) for _ in range(bench.rounds)]
    return [Figure("of the time is spent in jobs", spread(shares), "%", Target(95, 98))]


def _async_share(bench: Bench, jobs: int) -> float:
    bench.empty()
    board = bench.board(marks=jobs)
    bodies = [envelope("adoze", number, ASYNC_S) for number in range(jobs)]
    with bench.queue() as queue:
        load_each(bench.redis, queue.keys, bodies)
        with bench.pool(1, "--async-slots", str(ASYNC_SLOTS)) as pool:
            bench.watch(pool, lambda: board.total() >= jobs, 60, f"{jobs} async jobs")
    took = max(board.column(marks.ENDED, jobs)) - min(board.column(marks.STARTED, jobs))
    return 100 * jobs / ASYNC_SLOTS * ASYNC_S / (took / 1e9)


@row("async-jobs", "async: jobs of 100 ms sleep, 1 process, 100 slots")
def async_jobs(bench: Bench) -> list[Figure]:
    """Against the ideal: full slots from the first start to the last end."""
    jobs = bench.size.of(200, 1_000, 1_000)
    shares = [_async_share(bench, jobs) for _ in range(bench.rounds)]
    return [Figure("of the ideal rate", spread(shares), "%", Target(97, 99))]


@dataclass(frozen=True)
class _ShortJobs:
    """Seconds from the start until the short jobs were done. `captive`: those that ran only after
    the long one, in its process."""

    took: float
    captive: int


def _run_short_jobs(bench: Bench, jobs: int, long_s: float) -> _ShortJobs:
    """With a long job first among them and two processes; or without it and with one. All begin
    in one instant, in workers that have run such jobs before."""
    bench.empty()
    before = 50
    board = bench.board(marks=jobs + 1 + before)
    bodies = [envelope("spin", number, SHORT_S) for number in range(jobs)]
    if long_s:
        bodies.insert(0, envelope("work", jobs, long_s))
    processes = 2 if long_s else 1

    def done() -> bool:
        return board.total() - before - board.mark(jobs, marks.ENDS) >= jobs

    with bench.queue() as queue, bench.pool(processes, "--drain", "0s") as pool:
        bench.ready(pool, queue, processes)
        load_each(
            bench.redis,
            queue.keys,
            [envelope("spin", jobs + 1 + number, SHORT_S) for number in range(before)],
        )
        bench.watch(pool, lambda: board.total() >= before, 30, "the first jobs")
        bench.ready(pool, queue, processes)
        queue.pause()
        load_each(bench.redis, queue.keys, bodies)
        queue.resume()
        bench.watch(pool, done, 120, f"{jobs} short jobs")
        pool.kill()
    begins, ends = board.column(marks.STARTED, jobs), board.column(marks.ENDED, jobs)
    first = min([*begins, board.mark(jobs, marks.STARTED)]) if long_s else min(begins)
    released = board.mark(jobs, marks.ENDED)
    captive = sum(begin >= released for begin in begins) if released else 0
    return _ShortJobs((max(ends) - first) / 1e9, captive)


@row("long-among-short", "one long job among 1 ms jobs, 2 processes")
def long_among_short(bench: Bench) -> list[Figure]:
    """The short ones against one process that runs them alone. They compute: a sleep of 1 ms is
    never exactly that."""
    jobs = bench.size.of(200, 2_000, 10_000)
    long_s = float(bench.size.of(3, 10, 30))
    later = []
    shares = []
    captive = []
    for _ in range(bench.rounds):
        alone = _run_short_jobs(bench, jobs, 0)
        # on a slow machine it takes longer; nobody waits for its end
        beside = _run_short_jobs(bench, jobs, max(long_s, 2 * alone.took))
        later.append(1000 * (beside.took - alone.took))
        shares.append(beside.took / alone.took)
        captive.append(float(beside.captive))
    return [
        Figure(
            "short ones later than with one worker less",
            spread(later),
            "ms",
            Target(10, 0, more=False),
        ),
        Figure("time, of that with one worker", spread(shares)),
        Figure("short ones that waited behind the long one", spread(captive), "jobs"),
    ]
