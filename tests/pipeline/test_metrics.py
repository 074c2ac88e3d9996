"""Every number of a report, against values computed by hand from the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from rqueue.errors import ConfigError
from rqueue.pipeline.plan.measure import visits
from rqueue.pipeline.report import metrics
from rqueue.pipeline.report.report import report
from tests.pipeline.history_rows import PDF, SCENARIO, T0, frame
from tests.support.spark import Sparks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START, END = T0, T0 + 10_000


@pytest.fixture(scope="module")
def rows(sparks: Sparks) -> Iterator[DataFrame]:
    rows = metrics.prepare(frame(sparks.get(), SCENARIO), START, END).cache()
    yield rows
    rows.unpersist()


def found(table: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in table.collect()]


def pick(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_totals(rows: DataFrame) -> None:
    [row] = found(metrics.totals(rows))
    assert pick(row, "rows", "queues", "workers") == (10, 2, 3)
    # m1 m2 done; p1 p2 p3 failed; p4 removed
    assert pick(row, "done", "failed", "removed") == (2, 3, 1)
    # one of m1, two of m2, one of p1, two of p2, one of p3; two of them succeeded
    assert pick(row, "attempts", "failed_attempts", "retries") == (7, 5, 3)
    assert row["untimed"] == 2  # those of p2: nobody knows when they began
    assert pick(row, "run_ms", "wasted_ms") == (200 + 400 + 100 + 2000 + 500, 400 + 2000 + 500)
    assert row["amplification"] == pytest.approx((1 + 2 + 1 + 2 + 1) / 5)
    # waits 100 100 300 500 3000; runs 100 200 400 500 2000: the third, and the fifth of five
    assert pick(row, "wait_p50_ms", "wait_p95_ms", "wait_max_ms") == (300, 3000, 3000)
    assert pick(row, "run_p50_ms", "run_p95_ms", "run_max_ms") == (400, 2000, 2000)
    assert pick(row, "wait_mean_ms", "run_mean_ms") == (800, 640)


def test_percentiles_are_nearest_rank(spark: SparkSession) -> None:
    job = {"task": "t", "outcome": "ack", "at": 1, "enqueued": 0}
    many = [job | {"id": str(n), "started": n, "finished": 2 * n} for n in range(1, 101)]
    [row] = found(metrics.totals(metrics.prepare(frame(spark, many), START, END)))
    assert pick(row, "wait_p50_ms", "wait_p95_ms", "wait_p99_ms") == (50, 95, 99)
    assert pick(row, "run_p50_ms", "run_p95_ms", "run_p99_ms") == (50, 95, 99)


def test_killed_attempts_take_time(spark: SparkSession) -> None:
    """One whose beginning the supervisor noted, one for which there is the limit only, and one that
    the worker got later than the limit before its end."""
    limit = '{"kind":"time_limit","type":"HardTimeLimit","limit":1.5}'
    slow = PDF | {"task": "slow", "enqueued": 1000, "error": "HardTimeLimit", "cause": limit}
    rows = [
        slow | {"id": "1", "outcome": "crash", "at": 4000, "attempts": 0}
        | {"acquired": 1900, "started": 2000, "finished": 4000},
        slow | {"id": "2", "outcome": "dead", "at": 5000, "attempts": 0, "finished": 5000},
        slow | {"id": "3", "outcome": "crash", "at": 6000, "acquired": 5000, "finished": 6000},
    ]  # fmt: skip
    prepared = metrics.prepare(frame(spark, rows), START, END)
    [row] = found(metrics.totals(prepared))
    assert pick(row, "attempts", "untimed") == (3, 0)
    assert pick(row, "run_ms", "wasted_ms", "run_max_ms") == (4500, 4500, 2000)
    assert pick(row, "wait_p50_ms", "wait_max_ms") == (2500, 4000)
    [task] = found(metrics.breaches(prepared, None, 1200))
    assert pick(task, "task", "attempts", "run_breaches") == ("slow", 3, 2)
    [error] = found(metrics.errors(prepared))
    assert pick(error, "error", "attempts", "wasted_ms") == ("HardTimeLimit", 3, 4500)
    [worker] = found(metrics.workers(prepared, START, END))
    assert pick(worker, "worker", "busy_ms", "crashes") == ("w2", 4500, 3)
    assert [row["id"] for row in found(metrics.slowest(prepared))] == ["1", "2", "3"]
    assert [row["run"] for row in found(visits(frame(spark, rows)))] == [2.0, 1.5, 1.0]


def test_nothing_in_the_range(rows: DataFrame) -> None:
    empty = rows.where("false")
    [row] = found(metrics.totals(empty))
    assert pick(row, "rows", "done", "attempts", "run_ms") == (0, 0, 0, 0)
    assert pick(row, "amplification", "wait_p50_ms", "run_max_ms") == (None, None, None)
    assert found(metrics.workers(empty, START, END)) == []
    assert found(metrics.fairness(empty)) == [{"groups": 0, "jain_jobs": None, "jain_run": None}]


def test_outcomes(rows: DataFrame) -> None:
    counts = {row["outcome"]: row["rows"] for row in found(metrics.outcomes(rows))}
    assert counts == dict(ack=2, retry=2, dead=3, crash=1, cancelled=1, park=1)


def test_over_time(rows: DataFrame) -> None:
    first, second = found(metrics.over_time(rows, START, 5000))
    assert pick(first, "from_ms", "done", "failed", "removed", "attempts") == (T0, 2, 2, 0, 6)
    assert pick(first, "wait_p50_ms", "run_p50_ms", "retries") == (300, 400, 3)
    assert pick(second, "from_ms", "done", "failed", "removed", "attempts") == (
        T0 + 5000, 0, 1, 1, 1,
    )  # fmt: skip
    assert second["wait_p50_ms"] is None


def test_stretches_begin_where_the_range_begins(rows: DataFrame) -> None:
    buckets = found(metrics.over_time(rows, START - 300, 1000))
    assert [row["from_ms"] - T0 for row in buckets][:3] == [-300, 700, 1700]


def test_by_task(rows: DataFrame) -> None:
    pdf, mail, odd = found(metrics.by_dimension(rows, "task"))
    assert pick(pdf, "key", "attempts", "done", "failed", "removed") == ("pdf", 4, 0, 3, 1)
    assert pick(pdf, "run_ms", "wasted_ms", "wasted_share") == (2500, 2500, 1.0)
    assert pdf["amplification"] == pytest.approx(4 / 3)
    assert pick(mail, "key", "attempts", "done", "retries") == ("mail", 3, 2, 1)
    assert mail["wasted_share"] == pytest.approx(4 / 7)
    assert mail["amplification"] == pytest.approx(3 / 2)
    assert pick(mail, "wait_p50_ms", "wait_max_ms", "run_p50_ms") == (100, 300, 200)
    assert pick(odd, "key", "attempts", "run_ms", "amplification") == ("odd", 0, 0, None)


@pytest.mark.parametrize(
    ("dimension", "attempts"),
    [
        ("queue", {"a": 3, "b": 4}),
        ("group", {"g1": 3, "g2": 4, None: 0}),
        ("worker", {"w1": 3, "w2": 3, "w3": 1, None: 0}),
        ("label", {"gpu=1": 3, "zone=eu": 1, None: 4}),
        ("label:gpu", {"1": 3, None: 4}),
        ("label:o'dd", {None: 7}),
    ],
)
def test_by_other_dimensions(rows: DataFrame, dimension: str, attempts: dict[str, int]) -> None:
    by = found(metrics.by_dimension(rows, dimension))
    assert {row["key"]: row["attempts"] for row in by} == attempts


def test_another_dimension_is_refused(rows: DataFrame) -> None:
    with pytest.raises(ConfigError, match="by: 'color' is not one of task, queue"):
        metrics.by_dimension(rows, "color")


def test_fairness_between_the_values_of_a_label(spark: SparkSession) -> None:
    job = {"task": "t", "outcome": "ack", "at": 1, "enqueued": 0, "started": 0}
    rows = [
        job | {"id": f"{tenant}{number}", "finished": 10, "labels": {"tenant": tenant, "n": "1"}}
        for tenant, count in (("a", 6), ("b", 2))
        for number in range(count)
    ]
    prepared = metrics.prepare(
        frame(spark, [*rows, job | {"id": "none", "finished": 5}]), START, END
    )
    assert [(row["group"], row["jobs"]) for row in found(metrics.groups(prepared, "tenant"))] == [
        ("a", 6), ("b", 2),
    ]  # fmt: skip
    [row] = found(metrics.fairness(prepared, "tenant"))
    assert row["groups"] == 2 and row["jain_jobs"] == pytest.approx(64 / (2 * 40))
    [none] = found(metrics.fairness(prepared))
    assert none["groups"] == 0


def test_histograms(rows: DataFrame) -> None:
    def bins(column: Any) -> dict[int, int]:
        edges = metrics.HISTOGRAM_EDGES
        return {
            edges[row["bin"]]: row["attempts"] for row in found(metrics.histogram(rows, column))
        }

    # an upper end is exclusive: 100 is in the bin that ends at 200
    assert bins("wait_ms") == {200: 2, 500: 1, 1000: 1, 5000: 1}
    assert bins("run_ms") == {200: 1, 500: 2, 1000: 1, 5000: 1}


def test_what_is_beyond_the_last_edge_is_counted(spark: SparkSession) -> None:
    year = 365 * 24 * 3600 * 1000
    row = {"task": "t", "id": "1", "outcome": "ack", "at": 1, "enqueued": -year, "started": 0}
    prepared = metrics.prepare(frame(spark, [row | {"finished": 0}]), START, END)
    assert found(metrics.histogram(prepared, "wait_ms")) == [
        {"bin": len(metrics.HISTOGRAM_EDGES), "attempts": 1}
    ]


def test_errors(rows: DataFrame) -> None:
    by_class = {row["error"]: row for row in found(metrics.errors(rows))}
    assert list(by_class) == ["SIGSEGV", "KeyError", "TimeoutError", "ValueError"]
    numbers = {e: pick(r, "attempts", "jobs", "final", "wasted_ms") for e, r in by_class.items()}
    assert numbers == {
        "SIGSEGV": (2, 1, 1, None),  # the second of two ended the job
        "KeyError": (1, 1, 1, 500),
        "TimeoutError": (1, 1, 0, 400),  # tried again
        "ValueError": (1, 1, 1, 2000),  # a retry that the queue's limit made the last
    }
    assert pick(by_class["SIGSEGV"], "tasks", "task_count") == (["pdf"], 1)
    assert pick(by_class["SIGSEGV"], "first_ms", "last_ms") == (T0 + 4000, T0 + 5000)


def test_dead_letters(rows: DataFrame) -> None:
    dead = found(metrics.dead_letters(rows))
    assert [pick(row, "task", "kind", "error", "message", "dead") for row in dead] == [
        ("pdf", "exception", "KeyError", None, 1),
        ("pdf", "crash", "SIGSEGV", "the worker process was killed", 1),
        ("pdf", "exception", "ValueError", "boom", 1),
    ]
    assert dead[0]["jobs"] == [{"queue": "b", "id": "p3"}]


def test_dead_letters_name_the_newest_three(spark: SparkSession) -> None:
    job = {"task": "t", "outcome": "dead", "error": "E", "enqueued": 0}
    many = [job | {"id": str(n), "at": n} for n in range(5)]
    [row] = found(metrics.dead_letters(metrics.prepare(frame(spark, many), START, END)))
    assert [job["id"] for job in row["jobs"]] == ["4", "3", "2"]


def test_workers(rows: DataFrame) -> None:
    w2, w1, w3 = found(metrics.workers(rows, START, END))
    # w2: its first job came at 900, its last ended at 4500; it ran 2000 and 500
    assert pick(w2, "worker", "busy_ms", "present_ms", "crashes") == ("w2", 2500, 3600, 1)
    assert w2["utilisation"] == pytest.approx(2500 / 3600)
    # w1: from 50 to 7000, when it met what it does not know; it ran 200, 400 and 100
    assert pick(w1, "worker", "busy_ms", "present_ms", "attempts") == ("w1", 700, 6950, 3)
    # w3: all that is known of it is a death
    assert pick(w3, "worker", "busy_ms", "present_ms", "utilisation", "crashes") == (
        "w3", 0, 0, None, 1,
    )  # fmt: skip


def test_workers_are_measured_within_the_range_only(spark: SparkSession) -> None:
    """A job that ran from 1 s before the range until 3 s into it was busy for 3 s of it."""
    row = {"task": "t", "id": "1", "outcome": "ack", "worker": "w", "at": 3000, "enqueued": -2000}
    prepared = metrics.prepare(
        frame(spark, [row | {"acquired": -1500, "started": -1000, "finished": 3000}]), START, END
    )
    [worker] = found(metrics.workers(prepared, START, END))
    assert pick(worker, "busy_ms", "present_ms", "utilisation") == (3000, 3000, 1.0)


OWN = "host:4711:0a1b2c3d"
"""The name that a consumer of one's own gets."""


def test_consumers_of_ones_own_have_no_utilisation(spark: SparkSession) -> None:
    """They hold a batch of jobs at once: what a pool's process runs counts alone."""
    took = {"task": "t", "outcome": "ack", "enqueued": 0, "acquired": 0, "started": 0}
    own = [took | {"id": f"o{n}", "worker": OWN, "at": 9, "finished": 9} for n in range(50)]
    ran = took | {"id": "p", "worker": "host:12:3-a0b1c2", "at": 8, "finished": 8}
    prepared = metrics.prepare(frame(spark, [*own, ran]), START, END)
    held, pool = found(metrics.workers(prepared, START, END))
    assert pick(held, "worker", "attempts", "busy_ms", "utilisation") == (OWN, 50, 450, None)
    assert pick(pool, "busy_ms", "utilisation") == (8, 1.0)
    made = report(frame(spark, [*own, ran]), START, END).document
    assert made["figures"]["utilisation"] == 1.0
    timed = visits(frame(spark, [*own, ran])).where("run IS NOT NULL").collect()
    assert [row["run"] for row in timed] == [0.008]


def test_fairness(rows: DataFrame) -> None:
    g2, g1 = found(metrics.groups(rows))
    assert pick(g2, "group", "jobs", "run_ms") == ("g2", 3, 2500)
    assert pick(g1, "group", "jobs", "run_ms") == ("g1", 2, 700)
    [row] = found(metrics.fairness(rows))
    assert row["groups"] == 2
    assert row["jain_jobs"] == pytest.approx(25 / (2 * (4 + 9)))
    assert row["jain_run"] == pytest.approx(3200**2 / (2 * (700**2 + 2500**2)))


@pytest.mark.parametrize(
    ("shares", "index"), [((5, 5, 5, 5), 1.0), ((9, 0, 0, 0), 0.25), ((1, 3), 16 / 20)]
)
def test_jain(spark: SparkSession, shares: tuple[int, ...], index: float) -> None:
    """All the same is 1, all to one of four is 1/4."""
    job = {"task": "t", "outcome": "cancelled", "at": 1, "enqueued": 0}
    rows = [job | {"id": f"{g}", "group": f"g{g}"} for g in range(len(shares))]
    for g, share in enumerate(shares):
        rows += [job | {"id": f"{g}-{n}", "group": f"g{g}", "outcome": "ack"} for n in range(share)]
    [row] = found(metrics.fairness(metrics.prepare(frame(spark, rows), START, END)))
    assert row["jain_jobs"] == pytest.approx(index)
    assert row["jain_run"] is None  # nobody ran at all


def test_breaches(rows: DataFrame) -> None:
    pdf, mail = found(metrics.breaches(rows, 250.0, 450.0))
    names = ("task", "attempts", "wait_breaches", "wait_share", "run_breaches", "run_share")
    assert pick(pdf, *names) == ("pdf", 2, 2, 1.0, 2, 1.0)
    assert pick(mail, *names) == ("mail", 3, 1, pytest.approx(1 / 3), 0, 0.0)


def test_an_objective_is_kept_by_what_just_reaches_it(rows: DataFrame) -> None:
    by_task = {row["task"]: row for row in found(metrics.breaches(rows, 300.0, None))}
    assert pick(by_task["mail"], "wait_breaches", "run_breaches", "run_share") == (0, None, None)


def test_slowest(rows: DataFrame) -> None:
    slowest = found(metrics.slowest(rows, 3))
    assert [pick(row, "id", "run_ms", "wait_ms") for row in slowest] == [
        ("p1", 2000, 500), ("p3", 500, 3000), ("m2", 400, 300),
    ]  # fmt: skip
