"""A discrete simulation of a queue before c workers, run in Spark over many parameter sets.

First come first served: a job starts when it has arrived and the first worker is free. That is the
Kiefer-Wolfowitz recursion, here with the times at which each worker becomes free instead of the
sorted vector of remaining work, which is the same thing; many sets are advanced together, as rows
of one numpy array. Every parameter set is one row of a DataFrame; it has a seed of its own, and
neither Spark's partitions nor the batches change what comes out. Sets that differ only in their
workers get the same arrivals and the same runs, so that a curve over workers is smooth.

Two kinds of arrivals: `fitted` draws the times between arrivals with the measured rate and squared
coefficient of variation (gamma up to 1, two-phase hyperexponential with balanced means beyond);
`measured` repeats the measured times between arrivals as they are, from a random place on, with all
the correlation they have. Runs are drawn from the measured ones in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rqueue.spark.errors import SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Outcome", "ParameterSet", "Workload", "simulate", "simulate_sets", "waits"]

Floats = NDArray[np.float64]

WARM_UP = 0.1
"""Share of the jobs at the start whose waits do not count: the queue begins empty."""

CELLS = 16_384
"""Sets times workers advanced together: what fits a core's cache."""

STEPS_AT_ONCE = 2_000_000
"""Sets times jobs drawn at once: 16 MB for each of the arrays."""

RETURNED = "struct<number: int, mean: double, middle: double, wait: double, busy: double>"


class ParameterSet(NamedTuple):
    """One simulation: its number, arrivals (see the module), workers, load as a multiple of the
    measured one, and which repetition it is (the seed, together with the workload's)."""

    number: int
    arrivals: str
    workers: int
    load: float
    repetition: int


class Outcome(NamedTuple):
    """The result of a set: mean wait, median and the quantile asked for, in seconds; and the
    share of the time that workers were busy."""

    number: int
    mean: float
    middle: float
    wait: float
    busy: float


@dataclass(frozen=True)
class Workload:
    """Common to all sets. `gaps`: measured seconds between arrivals; `runs`: measured seconds of
    runs; `rate` and `arrivals_cv2`: of the fitted arrivals; `jobs` of one simulation; `quantile` of
    the waits asked for; `seed` of everything."""

    gaps: Floats
    runs: Floats
    rate: float
    arrivals_cv2: float
    jobs: int = 20_000
    quantile: float = 0.95
    seed: int = 1


def waits(gaps: Floats, runs: Floats, workers: NDArray[np.int64]) -> Floats:
    """Seconds that each job waits. `gaps` and `runs` have a row per job and a column per set,
    `workers` a number per set."""
    jobs, sets = gaps.shape
    widest = int(workers.max())
    free = np.zeros((sets, widest))
    free[np.arange(widest) >= workers[:, None]] = np.inf  # workers that a set does not have
    flat = free.reshape(-1)
    first = np.arange(sets) * widest
    arrived = np.cumsum(gaps, axis=0)
    waited = np.empty_like(gaps)
    for job in range(jobs):
        at = free.argmin(axis=1) + first
        begin = np.maximum(flat[at], arrived[job])
        np.subtract(begin, arrived[job], out=waited[job])
        flat[at] = begin + runs[job]
    return waited


def draw(load: Workload, wanted: ParameterSet) -> tuple[Floats, Floats]:
    """Gaps and runs of one set, in seconds; the same for the same seed and repetition."""
    measured = wanted.arrivals == "measured"
    random = np.random.default_rng([load.seed, wanted.repetition, int(measured)])
    if measured:
        start = int(random.integers(len(load.gaps)))
        gaps = np.resize(np.roll(load.gaps, -start), load.jobs)
    else:
        gaps = _fitted(random, load.jobs, load.arrivals_cv2) / load.rate
    runs = load.runs[random.integers(len(load.runs), size=load.jobs)]
    return gaps / wanted.load, runs


def simulate(load: Workload, sets: Sequence[ParameterSet]) -> list[Outcome]:
    """Run these sets here, without Spark."""
    found: list[Outcome] = []
    for group in _groups(sorted(sets, key=lambda one: one.workers), load.jobs):
        drawn = [draw(load, one) for one in group]
        gaps = np.stack([gaps for gaps, _ in drawn], axis=1)
        runs = np.stack([runs for _, runs in drawn], axis=1)
        workers = np.array([one.workers for one in group])
        waited = waits(gaps, runs, workers)
        # A row per set, so that a sum does not depend on which sets stand beside it.
        counted = np.ascontiguousarray(waited[int(load.jobs * WARM_UP) :].T)
        middle, wait = np.quantile(counted, [0.5, load.quantile], axis=1)
        mean = counted.mean(axis=1)
        offered = [its_runs.sum() / max(its_gaps.sum(), 1e-9) for its_gaps, its_runs in drawn]
        busy = np.array(offered) / workers
        found += [
            Outcome(one.number, *map(float, (mean[i], middle[i], wait[i], min(busy[i], 1.0))))
            for i, one in enumerate(group)
        ]
    return found


def simulate_sets(
    spark: SparkSession,
    load: Workload,
    sets: Sequence[ParameterSet],
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Run these sets in Spark, a row each; `progress` is called with how many are done, and of how
    many.

    Sets of like size run at the same time. Raises SparkMissing.
    """
    try:
        from pyspark.sql.pandas.functions import arrow_udf
    except ImportError:
        raise SparkMissing("a simulation needs pyspark 4.1 or newer") from None

    cores = max(1, spark.sparkContext.defaultParallelism)
    found: list[Outcome] = []
    # Sorted: sets of like size come together, and are over at about the same time.
    ordered = sorted(sets, key=lambda one: one.workers)
    chunk = max(64 * cores, math.ceil(len(ordered) / 10))
    schema = "number int, arrivals string, workers int, load double, repetition int"

    def run(
        number: pa.Array,
        arrivals: pa.Array,
        workers: pa.Array,
        loads: pa.Array,
        repetition: pa.Array,
    ) -> pa.Array:
        columns = [column.to_pylist() for column in (number, arrivals, workers, loads, repetition)]
        wanted = [ParameterSet(*row) for row in zip(*columns, strict=True)]
        by_number = {outcome.number: outcome for outcome in simulate(load, wanted)}
        results = [by_number[one.number] for one in wanted]  # in the order of the rows
        types = [pa.int32(), *[pa.float64()] * (len(Outcome._fields) - 1)]
        arrays = [pa.array([outcome[i] for outcome in results], t) for i, t in enumerate(types)]
        return pa.StructArray.from_arrays(arrays, list(Outcome._fields))

    in_spark = arrow_udf(run, RETURNED)  # type: ignore[call-overload]  # takes the type's text too
    for start in range(0, len(ordered), chunk):
        part = ordered[start : start + chunk]
        rows = spark.createDataFrame([tuple(one) for one in part], schema)
        done = rows.repartition(cores).select(in_spark(*rows.columns).alias("done"))
        found += [Outcome(*row) for row in done.select("done.*").collect()]
        if progress is not None:
            progress(len(found), len(ordered))
    return sorted(found)


def _groups(sets: Sequence[ParameterSet], jobs: int) -> Iterator[list[ParameterSet]]:
    group: list[ParameterSet] = []
    for one in sets:  # by workers, ascending: the last of a group is its widest
        size = len(group) + 1
        if group and (size * one.workers > CELLS or size * jobs > STEPS_AT_ONCE):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _fitted(random: np.random.Generator, count: int, cv2: float) -> Floats:
    """Times of mean 1 and squared coefficient of variation `cv2`."""
    if cv2 < 1e-6:
        return np.ones(count)
    if cv2 <= 1:
        return random.gamma(1 / cv2, cv2, count)
    share = (1 + math.sqrt((cv2 - 1) / (cv2 + 1))) / 2
    quick = random.random(count) < share
    times: Floats = random.exponential(1.0, count) / (2 * np.where(quick, share, 1 - share))
    return times
