"""What the metrics make of the rows that a real pool writes when jobs crash it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.pipeline.report import metrics
from rqueue.tasks.options import Options
from rqueue.tasks.retry import RetryPolicy
from rqueue_workers.exit_codes import Exit
from tests.workers.pools import APP, Pool, eventually

pytestmark = pytest.mark.timeout(300)


def test_attempts_and_tries_are_those_of_the_jobs(
    spark: SparkSession, server: EmbeddedRedis, queue_name: str, tmp_path: Path
) -> None:
    """Each job says itself that it begins; the metrics count as many attempts, all with times, and
    as many tries of the jobs that ended."""
    begun = {name: f"{queue_name}-{name}" for name in ("alone", "fragile", "sturdy", "innocent")}
    began_ms = round(time.time() * 1000) - 60_000
    with Queue(queue_name, server.url) as queue:
        queue.send("die_alone", [begun["alone"]])
        queue.send("fragile", [begun["fragile"]])
        queue.send("hold", [queue_name], {}, Options(time_limit=0.5, max_crashes=2))
        queue.send("sturdy", [begun["sturdy"]], {}, Options(retry=RetryPolicy(delay=0.0)))
        for number in range(3):
            queue.send("innocent", [begun["innocent"], number])
        pool = Pool(
            server.url,
            tmp_path / "pool.log",
            queues=[queue_name],
            app=[APP, "tests.workers.poison_app"],
        )
        try:
            eventually(
                lambda: (counts := queue.counts()).dead == 4 and not (counts.ready or counts.held),
                lambda: pool.log,
            )
            assert pool.drained() == Exit.OK
        finally:
            pool.clean_up()
        ran = {name: int(queue.redis.llen(key)) for name, key in begun.items()}  # type: ignore[arg-type]
    assert ran == {"alone": 3, "fragile": 1, "sturdy": 12, "innocent": 3}
    options = {"url": server.url, "queues": queue_name}
    history = spark.read.format("rqueue-history").options(**options).load()
    rows = metrics.prepare(history, began_ms, began_ms + 3_600_000)
    by_task = {row["key"]: row for row in metrics.by_dimension(rows, "task").collect()}
    expected = {"die_alone": 3, "fragile": 1, "hold": 2, "sturdy": 12, "innocent": 3}
    assert {task: row["attempts"] for task, row in by_task.items()} == expected
    [total] = metrics.totals(rows).collect()
    assert (total["done"], total["failed"], total["untimed"]) == (3, 4, 0)
    assert total["amplification"] == sum(expected.values()) / 7
    assert by_task["hold"]["run_p50_ms"] >= 500
    assert by_task["hold"]["wasted_share"] == 1.0
    crashes = sum(row["crashes"] for row in metrics.workers(rows, began_ms, 2 * began_ms).collect())
    assert crashes == 3 + 1 + 2
