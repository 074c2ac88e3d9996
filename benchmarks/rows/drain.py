"""Throughput: draining a full queue, by a pool and by the bare loop over the same scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.apps.board import Board
from benchmarks.floors import commands
from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.processes import Program, module
from benchmarks.lab.rounds import Spread, interleave, ratios, spread
from benchmarks.lab.server import Usage, usage
from benchmarks.rows.row import Figure, Target, row
from rqueue.client._sync.queue import Queue

FLOOR_WINDOW = 256


@dataclass(frozen=True)
class Drained:
    """The figures of a drain. `rate`: jobs a second from the first job's end to the last one's."""

    jobs: int
    rate: float
    used: Usage
    processes: int

    @property
    def cpu_us(self) -> float:
        """Redis's CPU for a job, in microseconds: all of it, reading and writing sockets too."""
        return self.used.cpu / self.jobs * 1e6

    @property
    def script_us(self) -> float:
        """Of that inside the scripts."""
        return self.used.script_us / self.jobs

    @property
    def commands(self) -> float:
        """Commands that Redis counted for a job, those that scripts call included where the server
        counts them."""
        return self.used.commands / self.jobs

    @property
    def sent(self) -> float:
        """Commands that clients sent for a job: script calls, waiting, connecting."""
        return self.used.sent() / self.jobs


def drain(bench: Bench, jobs: int, processes: int, *options: str, app: str = "tasks") -> Drained:
    """Fill the queue with no-op jobs, start a pool, wait until all are done and settled."""
    board, queue = _filled(bench, jobs)
    before = usage(bench.redis)
    with queue, bench.pool(processes, *options, app=app) as pool:
        bench.watch(pool, lambda: board.total() >= jobs, 120, f"{jobs} no-op jobs")
        bench.watch(pool, lambda: queue.counts().held == 0, 5, "the last jobs settled")
        used = usage(bench.redis).since(before)
    return Drained(jobs, (jobs - 1) / board.span(), used, board.processes())


def _filled(bench: Bench, jobs: int) -> tuple[Board, Queue]:
    bench.empty()
    queue = bench.queue()
    load(bench.redis, queue.keys, envelope("hit"), jobs)
    return bench.board(), queue


@contextmanager
def loops(bench: Bench, count: int, window: int, history: bool) -> Iterator[list[Program]]:
    """Bare loops, running."""
    with ExitStack() as stack:
        arguments = (bench.url, "bench", str(window), "1" if history else "0")
        yield [
            stack.enter_context(
                module("benchmarks.floors.script_loop", arguments, bench.board_path)
            )
            for _ in range(count)
        ]


def floor(bench: Bench, jobs: int, processes: int = 2, *, history: bool = False) -> Drained:
    """The same by the bare loop."""
    board, queue = _filled(bench, jobs)
    before = usage(bench.redis)
    with queue, loops(bench, processes, FLOOR_WINDOW, history) as programs:
        bench.watch(programs[0], lambda: board.total() >= jobs, 120, "the bare loop")
        bench.watch(programs[0], lambda: queue.counts().held == 0, 5, "the last jobs settled")
        used = usage(bench.redis).since(before)
    return Drained(jobs, (jobs - 1) / board.span(), used, board.processes())


def _pairs(bench: Bench, jobs: int, processes: int) -> tuple[list[Drained], list[Drained]]:
    ours: list[Drained] = []
    bare: list[Drained] = []
    for _ in range(bench.rounds):
        ours.append(drain(bench, jobs, processes))
        bare.append(floor(bench, jobs))
    return ours, bare


def _of(drained: list[Drained], name: str) -> Spread:
    return spread([getattr(one, name) for one in drained])


def _rates(ours: list[Drained], bare: list[Drained], target: Target | None) -> list[Figure]:
    ratio = ratios([one.rate for one in ours], [one.rate for one in bare])
    return [
        Figure("of the bare loop over the same scripts (2 processes)", ratio, target=target),
        Figure("rqueue", _of(ours, "rate"), "jobs/s"),
        Figure("bare loop", _of(bare, "rate"), "jobs/s"),
    ]


@row("drain-2", "drain no-op jobs, 2 worker processes")
def drain_2(bench: Bench) -> list[Figure]:
    """Against the bare loop, with what it costs Redis."""
    jobs = bench.size.of(2_000, 60_000, 200_000)
    ours, bare = _pairs(bench, jobs, 2)
    return [
        *_rates(ours, bare, Target(0.5, 0.7)),
        Figure("Redis CPU per job", _of(ours, "cpu_us"), "µs", Target(6, 4, more=False)),
        Figure("Redis CPU per job, bare loop", _of(bare, "cpu_us"), "µs"),
        Figure("of it in scripts", _of(ours, "script_us"), "µs"),
    ]


@row("drain-10", "the same, 10 processes")
def drain_10(bench: Bench) -> list[Figure]:
    """Ten processes on all cores there are; the target is against the peers."""
    ours, bare = _pairs(bench, bench.size.of(2_000, 60_000, 200_000), 10)
    return _rates(ours, bare, None)


@row("floor-history", "the bare loop, writing history rows too", part="floors")
def floor_history(bench: Bench) -> list[Figure]:
    """The price of history where nothing else costs."""
    jobs = bench.size.of(2_000, 60_000, 200_000)
    found = interleave(
        bench.rounds,
        {
            "plain": lambda: floor(bench, jobs).rate,
            "history": lambda: floor(bench, jobs, history=True).rate,
        },
    )
    return [
        Figure("of the bare loop without history", ratios(found["history"], found["plain"])),
        Figure("bare loop with history", spread(found["history"]), "jobs/s"),
    ]


@row("commands", "commands per job, no-ops, 2 processes")
def commands_per_job(bench: Bench) -> list[Figure]:
    """All that Redis counted while a pool started, drained the queue and waited again."""
    jobs = bench.size.of(2_000, 20_000, 20_000)
    ours = [drain(bench, jobs, 2) for _ in range(bench.rounds)]
    return [
        Figure("commands clients sent", _of(ours, "sent"), "a job", Target(0.1, 0.03, more=False)),
        Figure("commands Redis counted, those inside scripts too", _of(ours, "commands"), "a job"),
    ]


@row("one-by-one", "drain through one process, settled one at a time (look-ahead 1)")
def one_by_one(bench: Bench) -> list[Figure]:
    """One round trip a job, against BLMOVE + LREM, which are two."""
    jobs = bench.size.of(300, 5_000, 20_000)
    body = envelope("hit")
    ours: list[Drained] = []

    def one() -> float:
        ours.append(drain(bench, jobs, 1, "--prefetch", "1"))
        return ours[-1].rate

    found = interleave(
        bench.rounds,
        {
            "ours": one,
            "bare": lambda: commands.take_one(bench.redis, body, jobs),
            "piped": lambda: commands.take_pipelined(bench.redis, body, jobs),
        },
    )
    return [
        Figure("of BLMOVE + LREM", ratios(found["ours"], found["bare"]), target=Target(1, 1.3)),
        Figure("rqueue", spread(found["ours"]), "jobs/s"),
        Figure("BLMOVE + LREM", spread(found["bare"]), "jobs/s"),
        Figure("LMOVE + LREM pipelined in hundreds", spread(found["piped"]), "jobs/s"),
        Figure("commands sent", _of(ours, "sent"), "a job"),
        Figure("of a job's time inside scripts", _of(ours, "script_us"), "µs"),
    ]
