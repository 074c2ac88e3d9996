"""The pipeline on a standalone cluster of Spark: its commands, and what kills of its processes do
to the lake."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from pyspark.sql import SparkSession

from rqueue.embedded.server import EmbeddedRedis
from rqueue.pipeline.archive.archiver import Batch, archive
from rqueue.pipeline.lake import lake as lakes
from rqueue.protocol.keys import QueueKeys
from tests.pipeline.test_archive_kill import QUEUES, traffic
from tests.support.command_line import program
from tests.support.history import archived_once, write
from tests.support.spark import ROOT, Sparks
from tests.support.spark_home import QUICK

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def test_archive_and_report(
    cluster_spark: SparkSession, sparks: Sparks, private_server: EmbeddedRedis, tmp_path: Path
) -> None:
    """The commands as people run them, with executors in processes of their own."""
    sparks.end_session()  # its cores are for the commands
    lake = str(tmp_path / "lake")
    paths = f"{ROOT}{os.pathsep}{ROOT / 'workers'}"
    options = ["--lake", lake, "--master", sparks.cluster.url, "--json"]
    for setting in (
        f"spark.executorEnv.PYTHONPATH={paths}",
        "spark.executor.memory=512m",
        "spark.sql.shuffle.partitions=2",
        f"spark.driver.extraJavaOptions={QUICK}",
        f"spark.executor.extraJavaOptions={QUICK}",
    ):
        options += ["--conf", setting]
    where = ("--url", private_server.tcp_url, "pipeline")
    with redis.Redis.from_url(private_server.url) as client:
        for queue in QUEUES:
            write(client, QueueKeys(queue), 20, 50)
        done = program(*where, "archive", "--once", *options, timeout=200)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout.splitlines()[-1])["rows"] == 2000
        write(client, QueueKeys(QUEUES[0]), 1, 50, first=1000)
    found = program(*where, "report", *options, timeout=200)
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["figures"]["rows"] == 2050


@pytest.mark.parametrize("victim", ["executor", "its Python", "worker"])
def test_processes_are_killed_while_it_archives(
    cluster_spark: SparkSession,
    sparks: Sparks,
    private_server: EmbeddedRedis,
    tmp_path: Path,
    victim: str,
) -> None:
    """Spark tries the tasks again by itself; nobody starts the archiver again."""
    kills: dict[str, Callable[[], None]] = {
        "executor": sparks.cluster.kill_executor,
        "its Python": lambda: sparks.cluster.kill_executor("python"),
        "worker": sparks.cluster.kill_worker,
    }
    path = tmp_path / "lake"
    source = {"url": private_server.tcp_url, "maxRowsPerBatch": "400", "partitionRows": "100"}
    begun, stop = threading.Event(), threading.Event()
    batches = 0

    def count(_: Batch) -> None:
        nonlocal batches
        batches += 1
        if batches == 2:
            begun.set()
        elif batches >= 6:
            stop.set()

    def kill() -> None:
        begun.wait()
        threading.Event().wait(0.3)  # a moment that nobody chose: in the midst of the next batch
        kills[victim]()

    killer = threading.Thread(target=kill)
    with redis.Redis.from_url(private_server.url) as client:
        for queue in QUEUES:
            write(client, QueueKeys(queue), 40, 20, first=10**6)
        with traffic(client, 7):
            killer.start()
            archive(
                cluster_spark,
                str(path),
                source,
                interval_s=0.05,
                stop=stop,
                on_batch=count,
            )
            killer.join()
        archive(cluster_spark, str(path), source, once=True)
        archived_once(client, QUEUES, lakes.read(cluster_spark, str(path)))
