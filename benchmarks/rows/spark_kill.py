"""Spark's processes killed at random: is a row of history, or a job, lost or there twice?"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.apps import board as marks
from benchmarks.apps.board import Board
from benchmarks.apps.spark_driver import next_round
from benchmarks.lab.bench import Bench, Stalled
from benchmarks.lab.processes import Program, children, module
from benchmarks.lab.rounds import spread
from benchmarks.rows.history import KEPT
from benchmarks.rows.row import Figure, Target, row
from rqueue.client._sync.queue import Queue
from rqueue.model.history_batch import read_entry

if TYPE_CHECKING:
    from tests.support.spark import Cluster

VICTIMS = ("driver", "driver's JVM", "executor", "executor's Python", "worker")
PATIENCE_S = 120.0
MOST_JOBS = 2_000_000


@row("spark-kill", "random SIGKILLs of the Spark driver and of Spark workers")
def spark_kill(bench: Bench) -> list[Figure]:
    """A driver on a standalone cluster of two workers writes jobs, round after round, and archives
    their history, while a pool runs them; a killed process is started again, and goes on."""
    from benchmarks.lab import spark as lab
    from tests.support.spark import Cluster

    kills = bench.size.of(1, 8, 20)
    per_round = bench.size.of(500, 2_000, 5_000)
    dice = random.Random(20 * kills)
    bench.empty()
    board = bench.board(marks=MOST_JOBS)
    with ExitStack() as stack:
        folder = stack.enter_context(lab.folder())
        queue = stack.enter_context(bench.queue())
        queue.configure(history_rows_max=KEPT)
        cluster = Cluster(folder)
        stack.callback(cluster.stop)
        pool = stack.enter_context(bench.pool(1))
        scene = _Scene(bench, cluster, folder, per_round, dice)
        stack.callback(scene.end)
        killed: Counter[str] = Counter()
        victims: list[str] = []
        for _ in range(kills):
            if not victims:  # each kind comes, in an order of its own each time
                victims = dice.sample(VICTIMS, len(VICTIMS))
            scene.wait_for_work()
            time.sleep(dice.uniform(0, 3))  # a moment that depends on nothing
            killed[scene.kill(victims.pop())] += 1
        scene.wait_for_work()
        (folder / "stop").touch()
        scene.wait_for("the last round", lambda: scene.said("written"))
        jobs = next_round(folder) * per_round
        bench.watch(pool, lambda: not _left(queue), 120, "the last jobs settled", 0.05)
        (folder / "drained").touch()
        scene.wait_for("the end of the archive", lambda: scene.said("end"))
        stored = _stored(bench, queue)
        archived = _archived(folder)
    starts = board.column(marks.STARTS, jobs)
    target = Target(0, more=False)
    return [
        Figure("rows of history lost", spread([float((stored - archived).total())]), "", target),
        Figure("rows twice", spread([float((archived - stored).total())]), "", target),
        Figure("jobs enqueued twice", spread([float(_more(board, starts, jobs))]), "", target),
        Figure("jobs lost", spread([float(starts.count(0))]), "", target),
        Figure("jobs", spread([float(jobs)]), "jobs"),
        Figure("rows", spread([float(stored.total())]), "rows"),
        *(Figure(f"kills: {who}", spread([float(killed[who])]), "") for who in sorted(killed)),
        Figure("drivers that gave up and were started again", spread([float(scene.gave_up)]), ""),
    ]


def _left(queue: Queue) -> int:
    counts = queue.counts()
    return counts.ready + counts.held + counts.scheduled


def _more(board: Board, starts: list[int], jobs: int) -> int:
    """Runs beyond one of each job, and of jobs that were not to be enqueued."""
    beyond = board.column(marks.STARTS, 10_000, jobs)
    return sum(starts) - len(starts) + starts.count(0) + sum(beyond)


def _stored(bench: Bench, queue: Queue) -> Counter[tuple[str, str]]:
    """Entry and job of every row that Redis has, by the package's own reader."""
    rows: Counter[tuple[str, str]] = Counter()
    start = "-"
    while page := bench.redis.xrange(queue.keys.history, start, "+", count=500):
        found: Any = page
        for entry, fields in found:
            rows.update((entry.decode(), one["id"]) for one in read_entry(fields, queue.name))
            start = "(" + entry.decode()
    return rows


def _archived(folder: Path) -> Counter[tuple[str, str]]:
    """The same of the lake."""
    from benchmarks.lab.spark import spark_here
    from rqueue.pipeline.lake import lake

    rows = lake.read(spark_here(), str(folder / "lake")).select("entry", "id").collect()
    return Counter((row["entry"], row["id"]) for row in rows)


class _Scene:
    """The driver, and whom it works with."""

    def __init__(
        self, bench: Bench, cluster: Cluster, folder: Path, per_round: int, dice: random.Random
    ) -> None:
        self.gave_up = 0
        self._bench = bench
        self._cluster = cluster
        self._dice = dice
        self._folder = folder
        self._arguments = (bench.url, cluster.url, str(folder), str(per_round))
        self._old: list[Program] = []
        self._known = 0
        self._driver = self._start()

    def _start(self) -> Program:
        self._known = 0
        name = "benchmarks.apps.spark_driver"
        return module(name, self._arguments, self._bench.board_path)

    def end(self) -> None:
        for one in (self._driver, *self._old):
            one.stop(0.0)

    def _connections(self) -> list[str]:
        words = ("round ", "batch ", "written", "end")
        return [x for x in self._driver.said(1 << 20).splitlines() if x.startswith(words)]

    def said(self, word: str) -> bool:
        return word in self._connections()

    def wait_for(self, what: str, true: Callable[[], object], seconds: float = PATIENCE_S) -> None:
        """Wait until it is true, and start the driver again whenever it gives up."""
        end = time.monotonic() + seconds
        while not true():
            if not self._driver.alive and not true():
                self.gave_up += 1
                self._restart()
            if time.monotonic() > end:
                raise Stalled(
                    f"{what}: not within {seconds:g} s; it said: {self._driver.said(800)}"
                )
            time.sleep(0.05)

    def wait_for_work(self) -> None:
        """Until the driver got something done since the last kill."""
        self.wait_for("a round or batch", lambda: len(self._connections()) > self._known)

    def _restart(self) -> None:
        self._old.append(self._driver)  # what it leaves behind ends by itself, or does not
        self._driver = self._start()

    def kill(self, whom: str) -> str:
        """SIGKILL one, or the driver where there is no such process; returns who it was."""
        self._known = len(self._connections())
        worker = self._dice.choice(self._cluster.workers)
        victims: list[int] = []
        if whom == "driver's JVM":
            victims = _below(self._driver.pid, "java")
        elif whom == "executor":
            victims = _below(worker.pid, "java")
        elif whom == "executor's Python":
            victims = _below(worker.pid, "python")
        elif whom == "worker":
            victims = [worker.pid]
        if not victims:
            whom, victims = "driver", [self._driver.pid]
        with suppress(ProcessLookupError):
            os.kill(victims[-1], signal.SIGKILL)
        if whom == "worker":
            self._cluster.workers.remove(worker)
            worker.end(timeout=10)
            self._cluster.workers.append(self._cluster.start_worker())
        if whom == "driver":
            self._driver.process.wait(30)
            self._restart()
        return whom


def _below(pid: int, program: str) -> list[int]:
    """The processes of a program that descend from one (Linux)."""
    found = []
    for child in children(pid)[1:]:
        with suppress(OSError):
            if program in Path(f"/proc/{child}/comm").read_text():
                found.append(child)
    return found
