"""rqueue and its peers in one run on one server, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.lab.bench import Bench, Stalled
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.processes import Died, Program, rqueue_pool
from benchmarks.lab.rounds import ratios, spread
from benchmarks.lab.server import memory, usage
from benchmarks.peers import running
from benchmarks.peers.catalogue import PEERS, Peer
from benchmarks.peers.running import Pace, PeerFailed
from benchmarks.rows.row import Figure, Outcome, Target

ProblemOf = Callable[[str], None]


def rqueue_drain(bench: Bench, processes: int, jobs: int, task: str) -> Pace:
    """Rates of the peers, by rqueue's: the pool starts with a full queue."""
    bench.empty()
    board = bench.board()
    with bench.queue() as queue:
        load(bench.redis, queue.keys, envelope(task), jobs)
        with bench.pool(processes) as pool:
            return running.watch(bench, board, pool.check, jobs, 120)


def drains(bench: Bench, peers: Sequence[Peer], processes: int, task: str = "hit") -> Outcome:
    """Throughput, Redis's CPU and commands per job; `task` as adapters have it.

    A peer drains as many jobs as it does in a few seconds, and counts with its best quarter; rqueue
    with all of its jobs.
    """
    name, jobs_ = f"peers-drain-{processes}", "no-op jobs"
    if task == "record":
        name, jobs_ = f"peers-record-{processes}", "jobs that write 64 bytes to a file"
    title = f"drain {jobs_}, {processes} worker processes, against the peers"
    outcome = Outcome(row_of(name, peers), title)
    begin = time.perf_counter()
    # so many that a round takes seconds: one of a second is at the mercy of the machine's others
    jobs = bench.size.of(2_000, 400_000, 800_000)
    counts: dict[str, int] = {}
    problems: list[str] = []
    paces: dict[str, list[Pace]] = {}
    seconds = bench.size.of(1, 3, 6)
    for peer in peers:  # how fast it is about
        try:
            pace = running.drain(bench, peer, processes, bench.size.of(50, 500, 500), task)
            counts[peer.name] = max(100, min(60_000, int(pace.best * seconds)))
        except (PeerFailed, Stalled, Died) as error:
            problems.append(f"{peer.name}: {error}")
    ours: list[Pace] = []
    for _ in range(bench.rounds):
        ours.append(rqueue_drain(bench, processes, jobs, task))
        for peer in peers:
            if peer.name not in counts:
                continue
            try:
                pace = running.drain(bench, peer, processes, counts[peer.name], task)
                paces.setdefault(peer.name, []).append(pace)
            except (PeerFailed, Stalled, Died) as error:
                problems.append(f"{peer.name}: {error}")
                del counts[peer.name]
                paces.pop(peer.name, None)
    outcome.failure = "; ".join(problems)
    if paces:
        best = [max(p[i].best for p in paces.values()) for i in range(bench.rounds)]
        ratio = ratios([one.whole for one in ours], best)
        target = Target(15, 25, every=True)
        outcome.figures.append(Figure("of the fastest peer", ratio, target=target))
    outcome.figures += _about("rqueue", ours, whole=True)
    for name, found in sorted(paces.items(), key=lambda pair: -max(p.best for p in pair[1])):
        outcome.figures += _about(name, found, whole=False)
    outcome.seconds = time.perf_counter() - begin
    return outcome


def row_of(row: str, peers: Sequence[Peer]) -> str:
    """The row of some of the peers is kept beside that of all, and does not take its place."""
    names = [peer.name for peer in peers]
    return row if {*names} == {*PEERS} else f"{row} ({', '.join(names)})"


def _about(name: str, paces: list[Pace], *, whole: bool) -> list[Figure]:
    rates = [one.whole if whole else one.best for one in paces]
    return [
        Figure(name, spread(rates), "jobs/s"),
        Figure(f"{name}: jobs of a round", spread([paces[0].jobs]), "jobs"),
        Figure(f"{name}: Redis CPU per job", spread([one.cpu_us for one in paces]), "µs"),
        Figure(f"{name}: commands per job", spread([one.commands for one in paces]), "a job"),
    ]


def memories(bench: Bench, peers: Sequence[Peer]) -> Outcome:
    """Bytes of a waiting job in Redis, with a text argument of 100 bytes."""
    title = "memory per waiting job, 100-byte payload, and the peers"
    outcome = Outcome(row_of("peers-memory", peers), title)
    jobs = bench.size.of(500, 10_000, 20_000)
    bench.empty()
    with bench.queue() as queue:
        before = memory(bench.redis)
        load(bench.redis, queue.keys, envelope("weigh", "x" * 100), jobs)
        found = (memory(bench.redis) - before) / jobs
    outcome.figures.append(Figure("rqueue", spread([found]), "bytes"))
    problems = []
    for peer in peers:
        try:
            bytes_ = running.weigh(bench, peer, jobs)
            outcome.figures.append(Figure(peer.name, spread([bytes_]), "bytes"))
        except PeerFailed as error:
            problems.append(f"{peer.name}: {error}")
    outcome.failure = "; ".join(problems)
    return outcome


def idles(bench: Bench, peers: Sequence[Peer], processes: int = 10) -> Outcome:
    """Commands that idle workers send, all together."""
    outcome = Outcome(row_of("peers-idle", peers), f"{processes} idle workers, commands a second")
    seconds = bench.size.of(2, 10, 60)
    problems = []

    def look(name: str, program: Program) -> None:
        with program:
            _quiet(bench, program)
            before = usage(bench.redis)
            time.sleep(seconds)
            used = usage(bench.redis).since(before)
            program.check()
        rate = max(0, used.commands - 3) / seconds
        outcome.figures.append(Figure(name, spread([rate]), "a second"))

    bench.empty()
    bench.board()
    look("rqueue", rqueue_pool(bench.url, bench.board_path, "bench", processes))
    for peer in peers:
        bench.empty()
        try:
            look(peer.name, running.work(bench, peer, processes))
        except (Stalled, Died) as error:
            problems.append(f"{peer.name}: {error}")
    outcome.failure = "; ".join(problems)
    return outcome


def _quiet(bench: Bench, program: Program, at_least: float = 6.0) -> None:
    """Wait until a worker is up: it has connected, and opens no more connections."""
    end = time.monotonic() + 60
    clients, since = -1, time.monotonic()
    while time.monotonic() < end:
        program.check()
        facts: Any = bench.redis.info("clients")
        now = int(facts["connected_clients"])
        if now != clients:
            clients, since = now, time.monotonic()
        if clients > 1 and time.monotonic() - since > at_least:
            return
        time.sleep(0.1)
    raise Stalled("the worker did not come to rest in 60 s")
