"""The commands of the pipeline on a Redis Cluster, whose queues are on different nodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import redis
from click.testing import Result
from pyspark.sql import SparkSession

from rqueue.inspector.jobs import all_jobs
from rqueue.model.history_batch import pack
from rqueue.pipeline.lake import lake as lakes
from rqueue.protocol import commands
from rqueue.protocol.job_packer import JobPacker
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.tasks.options import NO_OPTIONS
from rqueue.tasks.request import JobRequest
from rqueue.transport.redis_client import execute
from tests.support.command_line import invoke
from tests.support.history import T0, columns_of
from tests.support.redis_cluster import SmallCluster

QUEUES = [f"queue-{number}" for number in range(4)]


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of this test alone, so that all queues means its queues."""
    return queue_name


@pytest.fixture
def run(
    redis_cluster: SmallCluster, spark: SparkSession, namespace: str, away: Path
) -> Callable[..., Result]:
    """Runs `rqueue pipeline ...` in this process, on the shared session: with `alias` --cluster and
    the URL of one node."""

    def call(*args: str, code: int = 0, alias: bool = True) -> Result:
        url = redis_cluster.url if alias else redis_cluster.cluster_url
        where = ("--url", url, "--namespace", namespace)
        return invoke(*where, "pipeline", *args, *(["--cluster"] if alias else []), code=code)

    return call


def record(cluster: SmallCluster, keys: QueueKeys, columns: dict[str, Any]) -> None:
    """Write one entry of history."""
    rows = len(columns["id"])
    with cluster.client() as client:
        client.xadd(keys.history, {"n": rows, "b": pack(columns)})
        client.hincrby(keys.meta, "history_rows", rows)
        client.hset(keys.meta, "v", "1")


def test_archive_and_report(
    run: Callable[..., Result],
    redis_cluster: SmallCluster,
    spark: SparkSession,
    namespace: str,
    away: Path,
) -> None:
    for number, name in enumerate(QUEUES):
        numbers = range(10 * number, 10 * number + 10)
        record(redis_cluster, QueueKeys(name, namespace), columns_of(numbers))
    with redis_cluster.client() as client:
        nodes = {client.get_node_from_key(QueueKeys(name, namespace).meta) for name in QUEUES}
    assert len(nodes) > 1, "what the test is about"
    lake = str(away / "lake")
    said = run("archive", "--lake", lake, "--once").stdout
    assert "archived 40 rows" in said
    ids = [row["id"] for row in lakes.read(spark, lake).select("id").collect()]
    assert sorted(ids) == sorted(f"job-{n}" for n in range(40))
    record(redis_cluster, QueueKeys(QUEUES[1], namespace), columns_of(range(40, 45)))
    found = json.loads(run("report", "--lake", lake, "--json").stdout)
    assert found["figures"]["rows"] == 45
    assert found["queues"] == QUEUES


def test_load_and_replay(
    run: Callable[..., Result], redis_cluster: SmallCluster, namespace: str, away: Path
) -> None:
    for name in QUEUES:
        reject_one(redis_cluster, QueueKeys(name, namespace))
    lines = (json.dumps({"to": QUEUES[n % 4], "n": n}) for n in range(40))
    (away / "rows.json").write_text("\n".join(lines))
    args = ["load", str(away / "rows.json"), "--format", "json", "--task", "t"]
    args += ["--column", "queue=to", "--args-columns", "n", "--name", "once"]
    args += ["--partitions", "2", "--json"]
    assert json.loads(run(*args).stdout)["jobs"] == 40
    assert json.loads(run(*args).stdout)["jobs"] == 0
    replay = ["replay", "--where", "task = 'doomed'", "--purge", "--name", "again"]
    shown = run(*replay).stdout
    assert "would enqueue 4 jobs again" in shown
    assert "--cluster" in shown.splitlines()[-1]
    done = json.loads(run(*replay, "--yes", "--json").stdout)
    assert (done["jobs"], done["purged"]) == (4, 4)
    with redis_cluster.client() as client:
        for name in QUEUES:
            jobs = all_jobs(cast("redis.Redis", client), QueueKeys(name, namespace), "ready")
            assert [job.task for job in jobs] == [*["t"] * 10, "doomed"]


def reject_one(cluster: SmallCluster, keys: QueueKeys) -> None:
    """Make a dead letter of a job."""
    _, body, _, _ = JobPacker(keys, Settings()).pack(JobRequest("doomed", (), {}, NO_OPTIONS))
    with cluster.client() as cluster_client:
        client = cast("redis.Redis", cluster_client)
        execute(client, commands.enqueue_one(keys, f"doomed-{keys.queue}", body))
        term = execute(client, commands.register(keys, "c", lease_ms=60_000)).term
        pulled = execute(client, commands.pull(keys, "c", term, commands.Window(1)))
        cause = [(pulled.jobs[0], b'{"type":"E"}')]
        execute(client, commands.settle(keys, "c", term, None, reject=cause))
        execute(client, commands.unregister(keys, "c", term))


def test_plan(run: Callable[..., Result], redis_cluster: SmallCluster, namespace: str) -> None:
    random = np.random.default_rng(1)
    at = T0 + np.cumsum(random.exponential(500, 200)).astype(int)
    columns = columns_of(range(200)) | {"outcome": "ack", "enqueued": at.tolist()}
    columns |= {"started": (at + 20).tolist(), "finished": (at + 1020).tolist()}
    record(redis_cluster, QueueKeys("q", namespace), columns)
    quick = ("--repetitions", "5", "--jobs", "1000", "--target", "2s")
    hosts = {
        True: redis_cluster.url.removeprefix("redis://").partition("/")[0],
        False: redis_cluster.cluster_url.removeprefix("redis+cluster://"),
    }
    for alias, host in hosts.items():
        said = run("plan", "-q", "q", *quick, "--keda", alias=alias).stdout
        assert "- type: redis-cluster" in said
        assert f'addresses: "{host}"' in said
        assert "databaseIndex" not in said
