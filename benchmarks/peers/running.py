"""A peer under the bench: filled by its own client, run by its own worker."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.apps import board as marks
from benchmarks.apps.board import Board
from benchmarks.lab.bench import Bench, Stalled
from benchmarks.lab.processes import ROOT, Program
from benchmarks.lab.server import Usage, memory, usage
from benchmarks.peers.catalogue import Peer
from benchmarks.peers.environment import python

FILL_S = 300


def _variables(bench: Bench) -> dict[str, str]:
    return {"BENCH_URL": bench.url, marks.VARIABLE: str(bench.board_path)}


def fill(bench: Bench, peer: Peer, task: str, count: int, extra: str = "") -> float:
    """Enqueue jobs with the peer's client; returns how many a second, its start taken off."""
    command = [str(python(peer)), "-m", peer.adapter, "fill", task]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RQUEUE"))}
    environment = {**clean, "PYTHONPATH": str(ROOT), **_variables(bench)}
    begin = time.perf_counter()
    more = [extra] if extra else []
    done = subprocess.run(
        [*command, str(count), *more],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=FILL_S,
    )
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-4:])
        raise PeerFailed(f"{peer.name} could not enqueue: {said}")
    return count / (time.perf_counter() - begin)


class PeerFailed(Exception):
    """A peer did not do what was asked of it."""


def work(bench: Bench, peer: Peer, processes: int) -> Program:
    """Start the peer's worker."""
    command = [str(python(peer)), "-m", peer.adapter, "work", str(processes)]
    return Program(command, _variables(bench))


@dataclass(frozen=True)
class Pace:
    """The figures of a drain. `best`: jobs a second over the best quarter of the jobs; `whole`:
    from the first job to the last."""

    jobs: int
    best: float
    whole: float
    used: Usage

    @property
    def cpu_us(self) -> float:
        return self.used.cpu / self.jobs * 1e6

    @property
    def commands(self) -> float:
        return self.used.commands / self.jobs


def watch(bench: Bench, board: Board, check: Callable[[], None], jobs: int, seconds: float) -> Pace:
    """Follow the board until all jobs are done."""
    before = usage(bench.redis)
    end = time.monotonic() + seconds
    seen: list[tuple[float, int]] = []
    while True:
        now, total = time.monotonic(), board.total()
        seen.append((now, total))
        if total >= jobs:
            break
        check()
        if now > end:
            raise Stalled(f"{total} of {jobs} jobs in {seconds:g} s")
        time.sleep(0.02)
    used = usage(bench.redis).since(before)
    whole = (jobs - 1) / board.span()
    return Pace(jobs, max(whole, _best(seen, jobs // 4)), whole, used)


def _best(seen: list[tuple[float, int]], quarter: int) -> float:
    best = 0.0
    late = 0
    for begin, count in seen:
        while late < len(seen) and seen[late][1] - count < quarter:
            late += 1
        if late == len(seen):
            break
        best = max(best, (seen[late][1] - count) / (seen[late][0] - begin))
    return best


def drain(
    bench: Bench, peer: Peer, processes: int, jobs: int, task: str, seconds: float = 120
) -> Pace:
    """Fill, start the worker, wait until all are done."""
    bench.empty()
    board = bench.board()
    fill(bench, peer, task, jobs)
    with work(bench, peer, processes) as program:
        return watch(bench, board, program.check, jobs, seconds)


def weigh(bench: Bench, peer: Peer, jobs: int, payload: int = 100) -> float:
    """Bytes that a waiting job takes."""
    bench.empty()
    before = memory(bench.redis)
    bench.board()
    fill(bench, peer, "weigh", jobs, str(payload))
    return (memory(bench.redis) - before) / jobs
