"""Figures of history rows for a stretch of time: functions from one DataFrame to another.

All of them but `prepare` take what `prepare` returns. Times in their columns are milliseconds,
shares are from 0 to 1.

- An **attempt** is one try of a worker at a job: outcome `ack`, `retry` or `crash`, and `dead`
  where the worker said so itself, or a crash or a hard time limit spent the last one. (Where Redis
  alone knew that it was the last one, a `retry` has a `dead` beside it; it counts once.) It
  **failed** unless it is an `ack`.
- **wait** is from the moment at which a job could run, the later of `enqueued` and `due`, to its
  start. For a job that came back at once (no delay, or after a crash) it spans the tries before.
- **run** is from start to finish. Of an attempt that was killed the supervisor says when it began;
  where it did not, one killed at its hard limit ran for the limit (`rqueue.pipeline.times`), and
  one that crashed has no times: it is counted as **untimed**.
- A job **ended** done (`ack`), failed (`dead`) or removed (`cancelled`, `purged`,
  `expired`).
- **Amplification** is attempts per job, over jobs that ended done or failed: 1 is no retry at all.
- Percentiles are nearest-rank: the smallest value that so many of all do not exceed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from rqueue.errors import ConfigError
from rqueue.pipeline.times import BEGUN, OWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "DIMENSIONS",
    "HISTOGRAM_EDGES",
    "Dimension",
    "breaches",
    "by_dimension",
    "dead_letters",
    "errors",
    "fairness",
    "groups",
    "histogram",
    "label_of",
    "outcomes",
    "over_time",
    "prepare",
    "slowest",
    "totals",
    "workers",
]

Dimension = Literal["task", "queue", "group", "share", "worker", "label"]
DIMENSIONS: tuple[str, ...] = get_args(Dimension)

HISTOGRAM_EDGES = tuple(
    factor * 10**power for power in range(10) for factor in (1, 2, 5)
)  # ms: 1, 2, 5, 10, ... 5·10⁹ (58 days)
"""Upper ends of the bins of `histogram`, exclusive; a last bin holds what is beyond."""

_STEPS = (
    f"""
SELECT *, CAST(split_part(entry, '-', 1) AS BIGINT) AS at_ms,
  unix_millis({BEGUN}) AS started_ms, unix_millis(finished) AS finished_ms,
  unix_millis(acquired) AS acquired_ms,
  unix_millis(greatest(enqueued, due)) AS could_run_ms,
  get_json_object(cause, '$.kind') AS cause_kind,
  get_json_object(cause, '$.message') AS cause_message
FROM {{rows}}""",
    """
SELECT *, coalesce(outcome IN ('ack', 'retry', 'crash') OR (outcome = 'dead' AND (
    cause_kind IN ('crash', 'time_limit')
    OR (cause_kind IS NULL AND started IS NOT NULL))), false) AS attempt
FROM {rows} WHERE at_ms >= :start_ms AND at_ms < :end_ms""",
    """
SELECT *, attempt AND started_ms IS NOT NULL AS ran FROM {rows}""",
    """
SELECT queue, entry, row, id, task, `group`, share, labels, outcome, attempts, worker,
  coalesce(error, cause_kind, 'unknown') AS error, cause_kind, cause_message, at_ms,
  acquired_ms, started_ms, finished_ms, attempt,
  attempt AND outcome <> 'ack' AS failed_attempt,
  attempt AND outcome IN ('retry', 'crash') AS again,
  CASE WHEN outcome = 'ack' THEN 'done'
       WHEN outcome = 'dead' THEN 'failed'
       WHEN outcome IN ('cancelled', 'purged', 'expired', 'displaced', 'moved')
       THEN 'removed' END AS ended,
  CASE WHEN outcome IN ('ack', 'dead') THEN attempts + 1 END AS tries,
  CASE WHEN ran THEN greatest(started_ms - could_run_ms, 0) END AS wait_ms,
  CASE WHEN ran THEN greatest(finished_ms - started_ms, 0) END AS run_ms
FROM {rows}""",
)
"""Of `prepare`: each takes the rows of the one before. Not one query with a WITH clause: its parts
get other numbers in a query that has such a clause too, which then finds no rows that are kept."""

_COUNTS = """
  count_if(ended = 'done') AS done, count_if(ended = 'failed') AS failed,
  count_if(ended = 'removed') AS removed, count_if(attempt) AS attempts,
  count_if(failed_attempt) AS failed_attempts,
  count_if(attempt AND run_ms IS NULL) AS untimed, count_if(again) AS retries,
  coalesce(sum(run_ms), 0) AS run_ms,
  coalesce(sum(CASE WHEN failed_attempt THEN run_ms END), 0) AS wasted_ms,
  sum(tries) / count(tries) AS amplification
"""


_VALUE = "try_element_at(labels, :label)"


def _spread(column: str) -> str:
    """Mean, percentiles and maximum of a column, as `<column without _ms>_<what>_ms`."""
    name = column.removesuffix("_ms")
    percentiles = ", ".join(
        f"percentile_approx({column}, {p / 100}, 10000) AS {name}_p{p}_ms" for p in (50, 95, 99)
    )
    return f"{percentiles}, avg({column}) AS {name}_mean_ms, max({column}) AS {name}_max_ms"


def _sql(rows: DataFrame, query: str, /, **values: object) -> DataFrame:
    # `{rows}` is a view until the query is read; when a view goes, Spark lets go of what it keeps
    # under the plan of that view, which so must not be the plan of rows that are kept.
    return rows.sparkSession.sql(query, args=values or None, rows=rows.where("true"))


def prepare(rows: DataFrame, start_ms: int, end_ms: int) -> DataFrame:
    """History rows whose entry was written in [start_ms, end_ms), with what the others work on.

    rows: of the schema of history. Worth caching: every function reads it.
    """
    for step in _STEPS:
        rows = _sql(rows, step, start_ms=start_ms, end_ms=end_ms)
    return rows


def totals(rows: DataFrame) -> DataFrame:
    """One row: how many jobs ended and how, attempts, wasted time, spread of wait and run."""
    return _sql(
        rows,
        f"""SELECT count(*) AS rows, count(DISTINCT queue) AS queues,
          count(DISTINCT worker) AS workers, {_COUNTS}, {_spread("wait_ms")}, {_spread("run_ms")}
        FROM {{rows}}""",
    )


def outcomes(rows: DataFrame) -> DataFrame:
    """How often each outcome was written."""
    return _sql(
        rows,
        "SELECT outcome, count(*) AS rows FROM {rows} GROUP BY outcome ORDER BY rows DESC, outcome",
    )


def over_time(rows: DataFrame, start_ms: int, width_ms: int) -> DataFrame:
    """Counts and percentiles of each stretch of `width_ms`; stretches without rows are left out.

    start_ms: where the first begins.
    """
    return _sql(
        rows,
        f"""SELECT :start_ms + (at_ms - :start_ms) DIV :width_ms * :width_ms AS from_ms,
          {_COUNTS}, {_spread("wait_ms")}, {_spread("run_ms")}
        FROM {{rows}} GROUP BY 1 ORDER BY 1""",
        start_ms=start_ms,
        width_ms=width_ms,
    )


def by_dimension(rows: DataFrame, dimension: str) -> DataFrame:
    """Counts and spreads for each task, queue, group, share, worker or label (`name=value`), or for
    each value of one label (`label:NAME`).

    A job with several labels counts for each of them. Rows without the thing stand under null. Most
    time first. Raises ConfigError for another dimension.
    """
    label = label_of(dimension)
    more: dict[str, object] = {}
    if label is None:
        source = f"SELECT `{dimension}` AS key, * FROM {{rows}}"
    else:
        source = f"SELECT {_VALUE} AS key, * FROM {{rows}}"
        more["label"] = label
    if dimension == "label":
        source = """SELECT CASE WHEN name IS NOT NULL THEN concat(name, '=', value) END AS key, r.*
          FROM {rows} r LATERAL VIEW OUTER explode(labels) AS name, value"""
    return _sql(
        rows,
        f"""SELECT key, {_COUNTS}, {_spread("wait_ms")}, {_spread("run_ms")},
          coalesce(try_divide(sum(CASE WHEN failed_attempt THEN run_ms END), sum(run_ms)), 0)
            AS wasted_share
        FROM ({source}) GROUP BY key ORDER BY run_ms DESC, attempts DESC, key""",
        **more,
    )


def histogram(rows: DataFrame, column: Literal["wait_ms", "run_ms"]) -> DataFrame:
    """How many attempts fall into each bin of `HISTOGRAM_EDGES`: `bin` is the index of its upper
    end, empty bins are left out."""
    cases = " ".join(f"WHEN {column} < {edge} THEN {i}" for i, edge in enumerate(HISTOGRAM_EDGES))
    return _sql(
        rows,
        f"""SELECT CASE {cases} ELSE {len(HISTOGRAM_EDGES)} END AS bin, count(*) AS attempts
        FROM {{rows}} WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 1""",
    )


def errors(rows: DataFrame) -> DataFrame:
    """Failed attempts by the class of their error, most frequent first.

    jobs: different jobs it met; final: attempts after which the job was not tried again; wasted_ms:
    time spent in them, null where none is known; tasks: the first three by name, of task_count.
    """
    return _sql(
        rows,
        """SELECT error, count(*) AS attempts, count(DISTINCT queue, id) AS jobs,
          count_if(final) AS final, sum(run_ms) AS wasted_ms, count(DISTINCT task) AS task_count,
          slice(array_sort(collect_set(task)), 1, 3) AS tasks,
          min(at_ms) AS first_ms, max(at_ms) AS last_ms
        FROM (
          SELECT *, outcome = 'dead' OR (outcome = 'retry' AND
            count_if(NOT attempt) OVER (PARTITION BY queue, id, attempts) > 0) AS final
          FROM {rows} WHERE failed_attempt OR outcome = 'dead')
        WHERE failed_attempt GROUP BY error ORDER BY attempts DESC, error""",
    )


def dead_letters(rows: DataFrame) -> DataFrame:
    """Jobs that failed for good, by task and cause, most frequent first.

    kind: exception, crash, time_limit, rejected, forged or undecodable. message: of the newest one;
    null where history does not hold it (see `rqueue dead`). jobs: their ids, the newest three.
    """
    return _sql(
        rows,
        """SELECT task, error,
          coalesce(cause_kind, CASE WHEN error = 'Reject' THEN 'rejected'
            WHEN error IN ('forged', 'undecodable') THEN error ELSE 'exception' END) AS kind,
          max_by(cause_message, at_ms) AS message, count(*) AS dead,
          min(at_ms) AS first_ms, max(at_ms) AS last_ms,
          transform(slice(sort_array(collect_list(struct(at_ms, queue, id)), false), 1, 3),
            x -> struct(x.queue, x.id)) AS jobs
        FROM {rows} WHERE ended = 'failed' GROUP BY 1, 2, 3 ORDER BY dead DESC, task, error""",
    )


def workers(rows: DataFrame, start_ms: int, end_ms: int) -> DataFrame:
    """How busy each worker was, busiest first.

    busy_ms: time in attempts; present_ms: from its first job's acquisition to its last one's end;
    both within [start_ms, end_ms). utilisation: busy / present; above 1 when it runs several at
    once; null for a consumer of one's own, which holds jobs that it does not run yet. A worker that
    had no job left no trace.
    """
    return _sql(
        rows,
        f"""WITH clipped AS (
          SELECT *, least(finished_ms, :end_ms) AS until,
            CASE WHEN run_ms IS NOT NULL THEN greatest(started_ms, :start_ms) END AS begun,
            CASE WHEN started_ms IS NOT NULL
              THEN greatest(coalesce(acquired_ms, started_ms), :start_ms) END AS got
          FROM {{rows}} WHERE worker IS NOT NULL
        ), summed AS (
          SELECT worker, count(DISTINCT queue) AS queues, count_if(attempt) AS attempts,
            count_if(failed_attempt) AS failed_attempts,
            count_if(outcome = 'crash' OR (outcome = 'dead' AND attempt AND cause_kind IS NOT NULL))
              AS crashes,
            coalesce(sum(CASE WHEN begun < until THEN until - begun END), 0) AS busy_ms,
            greatest(coalesce(max(until) - min(got), 0), 0) AS present_ms
          FROM clipped GROUP BY worker)
        SELECT *, CASE WHEN NOT {OWN} THEN try_divide(busy_ms, present_ms) END AS utilisation
        FROM summed
        ORDER BY busy_ms DESC, worker""",
        start_ms=start_ms,
        end_ms=end_ms,
    )


def label_of(dimension: str) -> str | None:
    """The name in `label:NAME`; None for another dimension. Raises ConfigError for none."""
    kind, _, name = dimension.partition(":")
    if kind == "label" and name:
        return name
    if dimension not in DIMENSIONS:
        raise ConfigError(
            "by", f"'{dimension}' is not one of {', '.join(DIMENSIONS)}, or label:NAME"
        )
    return None


def groups(rows: DataFrame, label: str | None = None) -> DataFrame:
    """The share of each group of jobs, or of each value of a label: jobs ended, run time, and how
    long they waited; as `group`."""
    more: dict[str, object] = {}
    if label is not None:
        source = f"(SELECT {_VALUE} AS `group`, * EXCEPT (`group`) FROM {{rows}})"
        more["label"] = label
    else:
        source = "{rows}"
    return _sql(
        rows,
        f"""SELECT `group`, count_if(ended IN ('done', 'failed')) AS jobs,
          coalesce(sum(run_ms), 0) AS run_ms, {_spread("wait_ms")}
        FROM {source} WHERE `group` IS NOT NULL GROUP BY `group` ORDER BY run_ms DESC, `group`""",
        **more,
    )


def fairness(rows: DataFrame, label: str | None = None) -> DataFrame:
    """One row: Jain's index between groups, or values of a label, of the jobs that ended and of the
    time they ran.

    (Σx)² / (n·Σx²): 1 when all n groups got the same, 1/n when one got everything; null without
    groups.
    """
    return groups(rows, label).selectExpr(
        "count(*) AS groups",
        "try_divide(power(sum(jobs), 2), count(*) * sum(power(jobs, 2))) AS jain_jobs",
        "try_divide(power(sum(run_ms), 2), count(*) * sum(power(run_ms, 2))) AS jain_run",
    )


def breaches(rows: DataFrame, wait_ms: float | None, run_ms: float | None) -> DataFrame:
    """Attempts of each task that waited or ran longer than the objective; null for none given.

    wait_share, run_share: of all its attempts that have such a time. Most breaches first.
    """
    return _sql(
        rows,
        """WITH counted AS (
          SELECT task, count(wait_ms) AS attempts,
            CASE WHEN :wait_ms IS NOT NULL THEN count_if(wait_ms > :wait_ms) END AS wait_breaches,
            CASE WHEN :run_ms IS NOT NULL THEN count_if(run_ms > :run_ms) END AS run_breaches,
            max(wait_ms) AS wait_max_ms, max(run_ms) AS run_max_ms
          FROM {rows} WHERE run_ms IS NOT NULL GROUP BY task)
        SELECT *, try_divide(wait_breaches, attempts) AS wait_share,
          try_divide(run_breaches, attempts) AS run_share FROM counted
        ORDER BY coalesce(wait_breaches, 0) + coalesce(run_breaches, 0) DESC, task""",
        wait_ms=wait_ms,
        run_ms=run_ms,
    )


def slowest(rows: DataFrame, most: int = 20) -> DataFrame:
    """The single attempts that ran longest."""
    return _sql(
        rows,
        """SELECT task, queue, id, outcome, run_ms, wait_ms, worker, finished_ms FROM {rows}
        WHERE run_ms IS NOT NULL ORDER BY run_ms DESC, at_ms, queue, entry, row LIMIT :most""",
        most=most,
    )
