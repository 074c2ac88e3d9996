"""Arrivals and run times, measured in history: the input of `plan`.

Counted are visits: each time that a job ran, retries too, for each of them keeps a worker busy. A
visit arrives when the job was enqueued, when it was due, or when its run before ended, whatever was
last. A run that was killed is one of them where it is known when it began
(`rqueue.pipeline.times`); where not, it is counted apart. The range is divided into windows of
equal length; the busiest one, by the work that arrived in it (seconds of runs), is what capacity is
for.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from rqueue.errors import RQueueError
from rqueue.pipeline.plan.pools import pools_of, slots_at_once
from rqueue.pipeline.plan.queueing import Load
from rqueue.pipeline.times import OWN, begun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Measured", "TooFew", "measure", "visits"]

Floats = NDArray[np.float64]

SAMPLE = 100_000
"""Visits of the busiest window that are looked at one by one."""

FEWEST = 100
"""Visits of the busiest window below which nothing can be said."""

BINS = 200
"""Bins at the least for the dispersion of counts, whose error is then 0.1 for a Poisson stream."""

SHORTEST_RUN = 0.0005
"""Seconds that a run of 0 ms is taken for: half of the unit of history's clock."""


class TooFew(RQueueError):
    """Too few jobs ran to plan by."""


@dataclass(frozen=True)
class Measured:
    """The figures of the queues of one pool.

    `queues`: those that the same workers served, planned together. `first_ms`, `last_ms`: arrivals
    of the first and last visit. `visits`, `jobs`: how many, and of how many jobs (visits per job is
    what retries cost); `untimed`: runs whose length is not known.
    `window_s`: length of a window; `busiest_ms`: start of the busiest one; `quietest`: erlangs of
    the quietest. `average`: erlangs over the whole range. `load`: of the busiest window. `wait_s`:
    the quantile asked for, of the waits as they were over the range; `busiest_wait_s`: in the
    busiest window. `gaps`, `runs`: seconds, of the busiest window. `slots`: how many jobs the
    workers of that window ran at once, None where history does not name them. `trace`: arrivals and
    runs (s) of that window, behind those of `before` jobs that were there when it began.
    """

    queues: tuple[str, ...]
    first_ms: int
    last_ms: int
    visits: int
    jobs: int
    untimed: int
    window_s: float
    busiest_ms: int
    quietest: float
    average: float
    load: Load
    wait_s: float
    busiest_wait_s: float
    gaps: Floats
    runs: Floats
    slots: int | None
    trace: tuple[Floats, Floats]
    before: int

    @property
    def name(self) -> str:
        """The queues, for people."""
        return ", ".join(f"'{queue}'" for queue in self.queues)


def visits(history: DataFrame) -> DataFrame:
    """The runs in a table of history: queue, id, worker, arrived and begun (ms), waited, run (s).

    Runs of unknown length are there without their times: killed ones whose beginning is not known,
    and those of consumers of one's own.
    """
    entry = F.split("entry", "-")
    order = (entry[0].cast("long"), entry[1].cast("long"), F.col("row"))
    before = F.lag("finished").over(Window.partitionBy("queue", "id").orderBy(*order))
    arrived = F.unix_millis(F.greatest("enqueued", "due", before))
    started, finished = F.unix_millis("began"), F.unix_millis("finished")
    killed = F.expr(
        """outcome = 'crash' OR outcome = 'dead'
        AND get_json_object(cause, '$.kind') IN ('crash', 'time_limit')"""
    )
    # clocks of hosts are compared with Redis's here: what comes out negative is nothing
    return (
        history.withColumn("arrived", arrived)
        .withColumn("began", begun())
        .withColumn("own", F.coalesce(F.expr(OWN), F.lit(False)))
        .where(
            (F.col("began").isNotNull() | killed)
            & F.expr("finished IS NOT NULL AND arrived IS NOT NULL")
        )
        .select(
            "queue",
            "id",
            "worker",
            "arrived",
            started.alias("begun"),
            (F.greatest(started - F.col("arrived"), F.lit(0)) / 1000).alias("waited"),
            F.when(
                F.col("began").isNotNull() & ~F.col("own"),
                F.greatest((finished - started) / 1000, F.lit(SHORTEST_RUN)),
            ).alias("run"),
        )
    )


def measure(
    history: DataFrame,
    *,
    window_s: float = 600.0,
    quantile: float = 0.95,
    queues: Collection[str] = (),
) -> list[Measured]:
    """Measure the queues in a table of history (see `rqueue.spark.schemas.HISTORY`), those together
    that the same workers served; by name.

    window_s: length of a window; the range is divided evenly into about as many. queues: only
    these, and those that share their workers. Raises TooFew when nothing has enough.
    """
    everything = visits(history).persist()
    try:
        pairs = everything.select("queue", "worker").distinct().collect()
        pools = [
            pool
            for pool in pools_of((row["queue"], row["worker"]) for row in pairs)
            if not queues or not set(queues).isdisjoint(pool)
        ]
        found = [_pool(everything, pool, window_s, quantile) for pool in pools]
    finally:
        everything.unpersist()
    enough = [one for one in found if isinstance(one, Measured)]
    if not enough:
        most = max((one for one in found if isinstance(one, int)), default=0)
        raise TooFew(
            f"too few jobs ran to plan by: {most} in the best queue, and {FEWEST} in its busiest"
            " window are needed; take a longer range, or a longer window"
        )
    return enough


def _pool(
    everything: DataFrame, queues: tuple[str, ...], window_s: float, quantile: float
) -> Measured | int:
    """The figures of these queues; where that is too little, how many visits there were."""
    mine = everything.where(F.col("queue").isin(*queues))
    untimed = mine.where("run IS NULL").count()
    ran = mine.where("run IS NOT NULL")
    [whole] = ran.agg(
        F.min("arrived").alias("first"),
        F.max("arrived").alias("last"),
        F.count("*").alias("visits"),
        F.sum("run").alias("work"),
        F.percentile_approx("waited", quantile, 10_000).alias("wait"),
    ).collect()
    if whole["visits"] < FEWEST:
        return int(whole["visits"])
    # Apart from the others: with it Spark makes a sketch of the waits for each job, and merges
    # them one by one, which takes hours for a million jobs.
    [counted] = ran.agg(F.count_distinct("queue", "id").alias("jobs")).collect()
    first, last = whole["first"], whole["last"]
    length_ms = last - first + 1
    count = max(1, round(length_ms / (window_s * 1000)))
    width = length_ms / count
    number = F.floor((F.col("arrived") - first) / F.lit(width))
    windows = ran.groupBy(number.alias("window")).agg(F.sum("run").alias("work")).collect()
    work = {row["window"]: row["work"] for row in windows}
    busiest = max(work, key=lambda window: (work[window], -window))
    quietest = min(work.values()) if len(work) == count else 0.0
    begin = first + busiest * width
    columns = ("worker", "arrived", "begun", "waited", "run")
    rows = (
        ran.where(number == busiest)
        .select(*columns)
        .orderBy("arrived", "run")
        .limit(SAMPLE)
        .toArrow()
    )
    if rows.num_rows < FEWEST:
        return int(whole["visits"])
    # those that were there when the window began: waiting, or running still
    there = (
        ran.where((F.col("arrived") < begin) & (F.col("begun") + F.col("run") * 1000 > begin))
        .select(*columns)
        .orderBy("arrived", "run")
        .limit(SAMPLE)
        .toArrow()
    )
    arrived = rows["arrived"].to_numpy() / 1000
    runs = rows["run"].to_numpy()
    # All of the window, or, when there are more than are looked at, the part they came in.
    span = width / 1000 if rows.num_rows < SAMPLE else max(arrived[-1] - arrived[0], 0.001)
    mean = float(runs.mean())
    gaps = np.diff(arrived)
    # Repeated in a circle, the gaps shall have the window's rate; where the window ends with its
    # last arrival, the first one does not come at the same moment.
    gaps = np.append(gaps, max(span - float(gaps.sum()), float(gaps.mean())))
    load = Load(
        rate=rows.num_rows / span,
        run=mean,
        arrivals_cv2=burstiness(arrived - arrived[0], span, mean),
        runs_cv2=float(runs.var()) / mean**2,
    )
    waited = np.sort(rows["waited"].to_numpy())
    started = rows["begun"].to_numpy()
    left = _left(there["begun"].to_numpy(), there["run"].to_numpy(), begin)
    return Measured(
        queues=queues,
        first_ms=first,
        last_ms=last,
        visits=whole["visits"],
        jobs=counted["jobs"],
        untimed=untimed,
        window_s=width / 1000,
        busiest_ms=int(begin),
        quietest=quietest / (width / 1000),
        average=whole["work"] / (length_ms / 1000),
        load=load,
        wait_s=float(whole["wait"]),
        busiest_wait_s=float(waited[max(0, math.ceil(quantile * len(waited)) - 1)]),
        gaps=gaps,
        runs=runs,
        slots=slots_at_once(
            rows["worker"].to_pylist(),
            started.tolist(),
            (started + (runs * 1000).round().astype("int64")).tolist(),
        ),
        trace=(
            np.concatenate([np.full(len(left), begin / 1000), arrived]),
            np.concatenate([left, runs]),
        ),
        before=len(left),
    )


def _left(begun: NDArray[np.int64], runs: Floats, begin: float) -> Floats:
    """Seconds that were left to run at a moment: those that ran first, as they would be taken."""
    order = np.argsort(begun, kind="stable")
    done = np.maximum(0.0, begin - begun[order]) / 1000
    left: Floats = np.maximum(0.0, runs[order] - done)
    return left


def burstiness(arrived: Floats, span: float, run: float) -> float:
    """The ca² of arrivals at these seconds from 0 to `span`; `run`: mean seconds of a run.

    The squared coefficient of variation of the times between them, or the index of dispersion of
    their counts (variance to mean, in bins of ten arrivals or one run, whatever is longer),
    whatever is greater: the first sees that jobs come in batches, the second that batches come in
    batches. For a stream without memory both are the same. Bins are left out where there would be
    fewer than `BINS` of them.
    """
    gaps = np.diff(arrived)
    mean = float(gaps.mean()) if len(gaps) else 0.0
    alone = float(gaps.var()) / mean**2 if mean > 0 else float(len(arrived))
    bins = int(span / max(run, 10 * span / len(arrived)))
    if bins < BINS:
        return alone
    counts, _ = np.histogram(arrived, bins=bins, range=(0.0, span))
    return max(alone, float(counts.var() / counts.mean()))
