"""Capacity: the fewest workers that hold a quantile of the wait under a target.

A model (`queueing`) proposes; a discrete simulation in Spark (`simulate`) decides, over many
parameter sets: numbers of workers around what the model says, several multiples of the load, each
many times with other random numbers; with arrivals drawn from the measured rate and burstiness, and
with the measured arrivals themselves. A number of workers holds the target when the mean over the
repetitions, and its 95 % margin on top, is at most the target, for both kinds of arrivals. What the
plan says is for the busiest window of the range.

A worker here is a slot: one job at a time. A process that runs several at once is so many of them.
Queues that the same workers served are planned together (`rqueue.pipeline.plan.pools`), and the
model is held against what was: a plan whose model says something else of what was than what was
measured is not to be trusted, and says so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from rqueue.errors import ConfigError
from rqueue.pipeline.plan.measure import Measured, measure
from rqueue.pipeline.plan.pools import Check, check
from rqueue.pipeline.plan.queueing import MAX_WORKERS, Load, wait_quantile, workers_for
from rqueue.pipeline.plan.simulate import Outcome, ParameterSet, Workload, simulate_sets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LOADS", "Goal", "Plan", "Point", "plan", "plan_pool"]

LOADS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Multiples of the measured load that a plan answers for."""

AROUND = 12
"""Numbers of workers that are simulated around the model's answer."""

ROUNDS = 12
"""Times that more numbers of workers are tried, before the search is given up."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many sets are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The aim: the share `quantile` of the waits within `target` seconds. How it is simulated:
    `repetitions` of each set, of `jobs` each, from `seed`, at these multiples of the measured load,
    of which 1 is one. Raises ConfigError."""

    target: float
    quantile: float = 0.95
    repetitions: int = 50
    jobs: int = 20_000
    seed: int = 1
    loads: tuple[float, ...] = LOADS

    def __post_init__(self) -> None:
        if not 0 < self.target < math.inf:
            raise ConfigError("target", f"{self.target!r} is not a positive number of seconds")
        if not 0.5 <= self.quantile <= 0.999:
            raise ConfigError("percentile", f"{100 * self.quantile:g} is not from 50 to 99.9")
        if self.repetitions < 5:
            raise ConfigError("repetitions", "at least 5, or there is no margin")
        if self.jobs < 1000:
            raise ConfigError("jobs", "a simulation of fewer than 1,000 jobs says nothing")
        if 1.0 not in self.loads or not all(0 < load <= 100 for load in self.loads):
            raise ConfigError("loads", f"{self.loads!r} are not multiples up to 100, 1 among them")


@dataclass(frozen=True, slots=True)
class Simulated:
    """The wait (s) at the quantile over the repetitions, and its 95 % margin."""

    wait: float
    margin: float

    @property
    def most(self) -> float:
        """The longest wait to expect, as far as the repetitions show."""
        return self.wait + self.margin


@dataclass(frozen=True, slots=True)
class Point:
    """A number of workers at a load: how busy they are, and the wait (s) that the model, the
    simulation with fitted arrivals, and the one with the measured arrivals say; None where that was
    not simulated."""

    load: float
    workers: int
    busy: float
    model: float
    fitted: Simulated | None
    measured: Simulated | None

    def holds(self, target: float) -> bool:
        """Whether all that was simulated holds the target."""
        known = [one for one in (self.fitted, self.measured) if one is not None]
        return bool(known) and all(one.most <= target for one in known)


@dataclass(frozen=True)
class Plan:
    """Workers for the queues of one pool. `workers`: the answer; `model_workers`: what the model
    alone says. `points`: all that was computed, by load and workers. `by_load`: the workers for
    each multiple of the load, never fewer for more of it; for other ones than 1 with fitted
    arrivals only. `sets`: parameter sets simulated. `error`: how far the model's waits are from the
    simulation's (fitted), as the median of their relative difference where the simulation's is at
    least a tenth of the target; None where there is no such point. `check`: the model against what
    was, with the workers there were; None where history does not name them. Figures that contradict
    each other are not to be trusted."""

    measured: Measured
    goal: Goal
    workers: int
    model_workers: int
    points: tuple[Point, ...]
    by_load: dict[float, int]
    sets: int
    error: float | None
    check: Check | None

    @property
    def trusted(self) -> bool:
        """Whether the model says of what was what was measured, or nothing is known against it."""
        return self.check is None or not self.check.contradicted

    @property
    def busy(self) -> float:
        """Share of the time that the workers are busy in the busiest window."""
        return self.measured.load.erlangs / self.workers

    def curve(self, load: float = 1.0) -> list[Point]:
        """The points of one load, by workers."""
        return [point for point in self.points if point.load == load]


def plan(
    spark: SparkSession,
    history: DataFrame,
    goal: Goal,
    *,
    window_s: float = 600.0,
    queues: Collection[str] = (),
    progress: Progress | None = None,
) -> list[Plan]:
    """A plan for each pool in a table of history. queues: only those that serve one of these; the
    table is to have all queues, since those that share workers are planned together. Raises TooFew
    and ConfigError."""
    found = measure(history, window_s=window_s, quantile=goal.quantile, queues=queues)
    return [plan_pool(spark, one, goal, progress) for one in found]


def plan_pool(
    spark: SparkSession, measured: Measured, goal: Goal, progress: Progress | None = None
) -> Plan:
    """A plan for what was measured of the queues of one pool.

    Raises ConfigError when no number of workers that anybody would start holds the target.
    """
    search = _Search(spark, measured, goal, progress)
    model = {
        load: workers_for(measured.load.times(load), goal.target, goal.quantile)
        for load in goal.loads
    }
    search.simulate(
        (load, workers)
        for load in goal.loads
        for workers in _around(measured.load.times(load), model[load])
    )
    by_load = rising({load: search.least(load) for load in goal.loads})
    points = search.points()
    far = sorted(
        abs(point.model - point.fitted.wait) / point.fitted.wait
        for point in points
        if point.fitted is not None and point.fitted.wait >= goal.target / 10
    )
    return Plan(
        measured=measured,
        goal=goal,
        workers=by_load[1.0],
        model_workers=model[1.0],
        points=tuple(points),
        by_load=by_load,
        sets=len(search.outcomes),
        error=far[len(far) // 2] if far else None,
        check=_check(measured, goal),
    )


def rising(by_load: dict[float, int]) -> dict[float, int]:
    """The workers for each multiple of the load, where more load takes no fewer of them: what is
    measured is simulated at the load itself alone, and each number has chance in it."""
    found: dict[float, int] = {}
    most = 0
    for load in sorted(by_load):
        most = found[load] = max(most, by_load[load])
    return {load: found[load] for load in by_load}


def _check(measured: Measured, goal: Goal) -> Check | None:
    if measured.slots is None:
        return None
    return check(
        measured.busiest_wait_s,
        *measured.trace,
        measured.before,
        measured.slots,
        goal.quantile,
        goal.target,
    )


class _Search:
    """The simulations of one pool so far, and what they say."""

    def __init__(
        self, spark: SparkSession, measured: Measured, goal: Goal, progress: Progress | None
    ) -> None:
        self._spark = spark
        self._load = measured.load
        self._goal = goal
        self._progress = progress
        self._name = measured.name
        self._work = Workload(
            measured.gaps,
            measured.runs,
            measured.load.rate,
            measured.load.arrivals_cv2,
            goal.jobs,
            goal.quantile,
            goal.seed,
        )
        self.sets: list[ParameterSet] = []
        self.outcomes: list[Outcome] = []
        self._tried: set[tuple[float, int]] = set()

    def simulate(self, wanted: Iterable[tuple[float, int]]) -> None:
        """Simulate these loads and workers, unless that was done."""
        sets: list[ParameterSet] = []
        for load, workers in dict.fromkeys(wanted):
            if (load, workers) in self._tried:
                continue
            self._tried.add((load, workers))
            for kind in ("fitted", "measured") if load == 1.0 else ("fitted",):
                for repetition in range(self._goal.repetitions):
                    number = len(self.sets) + len(sets)
                    sets.append(ParameterSet(number, kind, workers, load, repetition))

        def progress(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(self._name, len(self.sets) + done, len(self.sets) + total)

        if sets:
            self.outcomes += simulate_sets(self._spark, self._work, sets, progress)
            self.sets += sets

    def least(self, load: float) -> int:
        """The fewest workers that hold the target at this load; simulates until that is known."""
        fewest = math.floor(self._load.erlangs * load) + 1
        for _ in range(ROUNDS):
            mine = [point for point in self.points() if point.load == load]
            holding = [point.workers for point in mine if point.holds(self._goal.target)]
            if not holding:
                widest = mine[-1].workers
                if widest >= MAX_WORKERS:
                    break
                self.simulate((load, min(widest * n, MAX_WORKERS)) for n in (2, 4))
                continue
            least = min(holding)
            below = max((p.workers for p in mine if p.workers < least), default=fewest - 1)
            if below == least - 1:
                return least
            self.simulate((load, workers) for workers in _spread(below + 1, least - 1, AROUND))
        raise ConfigError(
            "target", f"not held by {MAX_WORKERS:,} workers in the simulation: jobs come in batches"
        )

    def points(self) -> list[Point]:
        """All that was simulated, by load and workers."""
        waits: dict[tuple[float, int, str], list[float]] = defaultdict(list)
        for one, outcome in zip(self.sets, self.outcomes, strict=True):
            waits[one.load, one.workers, one.arrivals].append(outcome.wait)
        points = []
        for load, workers in sorted(self._tried):
            now = self._load.times(load)
            points.append(
                Point(
                    load,
                    workers,
                    min(now.erlangs / workers, 1.0),
                    wait_quantile(now, workers, self._goal.quantile),
                    _over(waits.get((load, workers, "fitted"))),
                    _over(waits.get((load, workers, "measured"))),
                )
            )
        return points


def _over(waits: list[float] | None) -> Simulated | None:
    if not waits:
        return None
    return Simulated(fmean(waits), _student(len(waits) - 1) * stdev(waits) / math.sqrt(len(waits)))


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, within 1 % from 4 degrees of freedom on: Cornish-Fisher
    around the normal's."""
    z = 1.959964
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _around(load: Load, model: int) -> list[int]:
    """Numbers of workers to look at first: from the fewest that keep up, past the model's."""
    fewest = math.floor(load.erlangs) + 1
    most = model + max(3, math.ceil((model - fewest) * 0.6))
    return sorted({*_spread(fewest, most, AROUND), max(fewest, model - 1), model, model + 1})


def _spread(low: int, high: int, count: int) -> list[int]:
    """At most `count` whole numbers from `low` to `high`, both included, evenly."""
    if high - low < count:
        return list(range(low, high + 1))
    return sorted({round(low + (high - low) * i / (count - 1)) for i in range(count)})
