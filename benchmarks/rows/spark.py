"""Spark beside rqueue: history into Parquet, jobs out of tables, and what reading costs workers.

Spark is imported when a row is measured: measuring the other rows needs none.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.apps.board import Board
from benchmarks.floors import enqueue_loop
from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.processes import Program, module
from benchmarks.lab.rounds import interleave, ratios, spread
from benchmarks.rows.history import KEPT
from benchmarks.rows.row import Figure, Target, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# -- history into Parquet --------------------------------------------------------------------------


@row("spark-archive", "history into Parquet, one batch, Spark on local[2]")
def spark_archive(bench: Bench) -> list[Figure]:
    """Against Spark reading the same rows from JSON files, whose schema is given."""
    from benchmarks.lab import spark as lab
    from rqueue.spark.schemas import HISTORY

    rows = bench.size.of(2_000, 400_000, 2_000_000)
    _make_history(bench, rows)
    spark = lab.spark_here()
    with lab.folder() as folder:
        texts = str(folder / "json")
        lab.history(bench, spark).write.json(texts)

        def ours() -> float:
            return lab.to_parquet(lab.history(bench, spark), folder / "ours", rows)

        def bare() -> float:
            return lab.to_parquet(spark.read.schema(HISTORY).json(texts), folder / "bare", rows)

        def lake() -> float:
            from rqueue.pipeline.archive.archiver import archive

            begin = time.perf_counter()
            path = str(folder / f"lake-{time.monotonic_ns()}")
            done = archive(spark, path, lab.place(bench, queues="bench"), once=True, compact=False)
            if done.rows != rows:
                raise AssertionError(f"{done.rows} of {rows} rows were archived")
            return rows / (time.perf_counter() - begin)

        ours(), bare()
        found = interleave(bench.rounds, {"ours": ours, "bare": bare, "lake": lake})
    name = "Spark reading the same rows from JSON files"
    return [
        Figure(f"of {name}", ratios(found["ours"], found["bare"]), target=Target(0.5)),
        Figure("rqueue's history", spread(found["ours"]), "rows/s"),
        Figure(name, spread(found["bare"]), "rows/s"),
        Figure("pipeline archive --once into a new lake", spread(found["lake"]), "rows/s"),
    ]


def _make_history(bench: Bench, rows: int) -> None:
    """Let a pool run so many no-op jobs, of which it writes history."""
    bench.empty()
    board = bench.board()
    with bench.queue() as queue:
        queue.configure(history_rows_max=KEPT)
        load(bench.redis, queue.keys, envelope("hit"), rows)
        with bench.pool(2) as pool:
            bench.watch(pool, lambda: board.total() >= rows, 300, f"{rows} no-op jobs")
            bench.watch(pool, lambda: queue.counts().held == 0, 5, "the last jobs settled")


# -- history as a stream ---------------------------------------------------------------------------


@row("spark-lag", "the archiver beside 2 workers that drain no-op jobs: does its lag grow?")
def spark_lag(bench: Bench) -> list[Figure]:
    """`rqueue pipeline archive` on local[2], on the same cores as workers and Redis. The lag at the
    end of each batch, and its slope over time in relation to the rate at which rows come."""
    from benchmarks.lab import spark as lab

    warm = bench.size.of(1_000, 1_200_000, 3_000_000)
    jobs = bench.size.of(3_000, 1_500_000, 5_000_000)
    _make_history(bench, warm)
    with bench.queue() as queue, lab.folder() as folder, ExitStack() as stack:
        archiver = stack.enter_context(_archiver(bench, folder))
        samples = _watched(bench, archiver, warm, 0)  # Java compiles meanwhile
        load(bench.redis, queue.keys, envelope("hit"), jobs)
        board = bench.board()
        begin = time.monotonic()
        workers = stack.enter_context(bench.pool(2))
        samples = _watched(bench, archiver, warm + jobs, len(samples))
        workers.check()
        caught_up = time.monotonic()
        drained = board.last() / 1e9
    running = [one for one in samples if one[0] <= drained]
    lags = [float(lag) for _, _, lag in samples]
    if len(running) >= 4:  # the first one has what came while the workers started
        comes = _slope([(at, total + lag) for at, total, lag in running[1:]])
        grows = _slope([(at, lag) for at, _, lag in running[1:]])
    else:  # batches longer than that: what was left of all that came
        comes = jobs / (drained - begin)
        grows = (jobs + warm - (running[-1][1] if running else warm)) / (drained - begin)
    return [
        Figure(
            "the lag grows by, of the rate at which rows come",
            spread([100 * grows / comes]),
            "%",
            Target(2, 0, more=False),
        ),
        Figure("lag at the end of a batch", spread(lags), "rows"),
        Figure("rows come", spread([comes]), "rows/s"),
        Figure("archived, until all was", spread([jobs / (caught_up - begin)]), "rows/s"),
        Figure("behind the workers when the last one ended", spread([caught_up - drained]), "s"),
        Figure("batches while they drained", spread([float(len(running))]), ""),
    ]


def _archiver(bench: Bench, folder: Path) -> Program:
    """A running archiver."""
    command = [sys.executable, "-m", "rqueue.cli", "pipeline", "archive", "--lake"]
    command += [str(folder / "lake"), "--interval", "1s", "--json", "--master", "local[2]"]
    return Program(command, {"RQUEUE_URL": bench.url})


def _watched(
    bench: Bench, archiver: Program, rows: int, known: int
) -> list[tuple[float, int, int]]:
    """Wait until the lake has so many rows; of each batch beyond the `known` ones: when it was
    seen, the rows of the lake then, and the lag."""
    found: list[tuple[float, int, int]] = []

    def more() -> bool:
        return len(_batches(archiver)) > known + len(found)

    while not found or found[-1][1] < rows:
        bench.watch(archiver, more, 180, "the next batch", 0.05)
        new = _batches(archiver)[known + len(found) :]
        found += [(time.monotonic(), one["total"], one["lag_rows"]) for one in new]
    return found


def _batches(program: Program) -> list[dict[str, Any]]:
    lines = program.said(1 << 20).splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return [one for one in found if one["event"] == "batch"]


def _slope(points: list[tuple[float, int]]) -> float:
    """Of the line that fits best, a second."""
    middle = sum(at for at, _ in points) / len(points)
    above = sum((at - middle) * value for at, value in points)
    return above / sum((at - middle) ** 2 for at, _ in points)


# -- tables into queues ----------------------------------------------------------------------------


@row("spark-write", "a table of jobs into a queue, Spark on local[2]")
def spark_write(bench: Bench) -> list[Figure]:
    """Against `enqueue_many` from two plain processes, which make the same jobs."""
    from benchmarks.lab import spark as lab

    jobs = bench.size.of(2_000, 200_000, 1_000_000)
    spark = lab.spark_here()

    def ours(count: int = jobs) -> float:
        bench.empty()
        table = spark.range(0, count, 1, 2).selectExpr(
            "'weigh' AS task", "array(lpad(string(id), 100, '0')) AS args"
        )
        begin = time.perf_counter()
        options = lab.place(bench, queue="bench")
        table.write.format("rqueue").options(**options).mode("append").save()
        return _stored(bench, count) / (time.perf_counter() - begin)

    def bare() -> float:
        bench.empty()
        with ExitStack() as stack:
            half = jobs // 2
            for first in (0, half):
                arguments = (bench.url, "bench", str(first), str(half))
                stack.enter_context(
                    module("benchmarks.floors.enqueue_loop", arguments, bench.board_path)
                )
            _pop(bench, enqueue_loop.READY, 2)
            begin = time.perf_counter()
            bench.redis.rpush(enqueue_loop.GO, 1, 2)
            _pop(bench, enqueue_loop.DONE, 2)
            return _stored(bench, jobs) / (time.perf_counter() - begin)

    ours(min(jobs, 20_000))
    found = interleave(bench.rounds, {"ours": ours, "bare": bare})
    name = "enqueue_many from two plain processes"
    return [
        Figure(f"of {name}", ratios(found["ours"], found["bare"]), target=Target(0.5)),
        Figure("Spark", spread(found["ours"]), "jobs/s"),
        Figure(name, spread(found["bare"]), "jobs/s"),
    ]


def _pop(bench: Bench, name: str, count: int) -> None:
    for _ in range(count):
        if bench.redis.blpop([name], 60) is None:
            raise AssertionError(f"no line began with {name}")


def _stored(bench: Bench, jobs: int) -> int:
    with bench.queue() as queue:
        stored = queue.counts().ready
    if stored != jobs:
        raise AssertionError(f"{stored} of {jobs} jobs were stored")
    return stored


# -- waiting jobs as a table -----------------------------------------------------------------------

LOW, HIGH = "0,,0,", "9,,0,"


@row("spark-read", "waiting jobs read as a table while 2 workers drain no-op jobs")
def spark_read(bench: Bench) -> list[Figure]:
    """The workers' throughput while the jobs of a lower level are read by Spark (local[2]), against
    that just before, on the same queue; all on the same cores."""
    from benchmarks.lab import spark as lab

    waiting = bench.size.of(2_000, 150_000, 1_000_000)
    ahead = bench.size.of(60_000, 2_200_000, 4_200_000)
    window = bench.size.of(1, 40, 80) / 10
    spark = lab.spark_here()
    found: dict[str, list[float]] = {"while": [], "before": [], "read": []}
    for _ in range(bench.rounds):
        bench.empty()
        board = bench.board()
        with bench.queue() as queue:
            queue.configure(history_rows_max=KEPT)
            load(bench.redis, queue.keys, envelope("hit"), waiting, LOW)
            options = lab.place(bench, queues="bench", states="ready", levels="0")
            # the first one starts Python's workers, and Java compiles
            _Reading(spark, {**options, "maxRowsPerSecond": "1000000"}).count()
            reading = _Reading(spark, options)
            load(bench.redis, queue.keys, envelope("hit"), ahead, HIGH)
            with bench.pool(2) as pool:
                bench.watch(pool, board.total, 30, "the first job")
                time.sleep(window / 4)
                before = _throughput(board, window)
                reading.start()
                bench.watch(pool, reading.under_way, 30, "the first task of the read", 0.02)
                found["while"].append(_throughput(board, window))
                found["before"].append(before)
                if board.total() >= ahead and bench.size.name != "tiny":
                    raise AssertionError("the workers had nothing left to drain")
                if reading.over and bench.size.name != "tiny":
                    raise AssertionError("the read was over before the window was")
                pool.kill()
            found["read"].append(waiting / reading.seconds_for(waiting))
    share = ratios(found["while"], found["before"])
    return [
        Figure("of the workers' throughput before", share, target=Target(0.8)),
        Figure("workers, before", spread(found["before"]), "jobs/s"),
        Figure("workers, while jobs are read", spread(found["while"]), "jobs/s"),
        Figure("jobs of the lower level read", spread(found["read"]), "jobs/s"),
    ]


def _throughput(board: Board, seconds: float) -> float:
    begin, done = time.perf_counter(), board.total()
    time.sleep(seconds)
    return (board.total() - done) / (time.perf_counter() - begin)


class _Reading:
    """One read of a queue's waiting jobs of the lower level, in a thread: how many there are."""

    def __init__(self, spark: SparkSession, options: dict[str, str]) -> None:
        self._spark = spark
        self._options = options
        self._tracker = spark.sparkContext.statusTracker()
        self._thread = threading.Thread(target=self._run, name="read", daemon=True)
        self._found = 0
        self._seconds = 0.0

    def start(self) -> None:
        self._thread.start()

    def under_way(self) -> bool:
        """A task runs, or ran."""
        return self.over or bool(self._tracker.getActiveStageIds())

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def seconds_for(self, jobs: int) -> float:
        """Seconds that it took, once it has ended; as many jobs must have been found."""
        self._thread.join()
        if self._found != jobs:
            raise AssertionError(f"{self._found} of {jobs} jobs were read")
        return self._seconds

    def count(self) -> int:
        """Read them all."""
        return self._spark.read.format("rqueue").options(**self._options).load().count()

    def _run(self) -> None:
        begin = time.perf_counter()
        self._found = self.count()
        self._seconds = time.perf_counter() - begin
