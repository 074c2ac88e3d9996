"""`rqueue pipeline report`, and the table it reads: the lake, and what comes after it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import Result
from pyspark.sql import SparkSession

from rqueue.cli import cli
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.pipeline.archive.archiver import archive
from rqueue.pipeline.missing import missing
from rqueue.pipeline.report import metrics
from rqueue.pipeline.table import history
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.schemas import HISTORY
from tests.pipeline.history_rows import leaves
from tests.support.command_line import runner
from tests.support.history import plain_rows, settle, trim, write

pytestmark = pytest.mark.timeout(600)

NOW = 4_000_000_000_000  # beyond every entry


@pytest.fixture
def namespace(client: redis.Redis, queue_name: str) -> Iterator[str]:
    """One of this test alone, so that all queues means its queues."""
    yield queue_name
    if keys := list(client.scan_iter(match=f"{queue_name}:*", count=1000)):
        client.unlink(*keys)


@pytest.fixture
def run(
    spark: SparkSession,
    server: EmbeddedRedis,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Result]:
    """Runs a command line in this process, with the tests' session."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RQUEUE_URL", raising=False)

    def call(*args: str, code: int = 0, url: str | None = None) -> Result:
        given = ["--url", url or server.url, "--namespace", namespace] if url != "" else []
        result = runner().invoke(cli, [*given, "pipeline", *args], prog_name="rqueue")
        assert result.exit_code == code, result.output
        return result

    return call


def ids(table: Any) -> Counter[tuple[str, str, int]]:
    return Counter(tuple(row) for row in table.select("queue", "entry", "row").collect())


def test_lake_and_tail_are_one_table(
    spark: SparkSession,
    server: EmbeddedRedis,
    client: redis.Redis,
    namespace: str,
    tmp_path: Path,
) -> None:
    """Archived, half archived, not archived: each row once, wherever it is."""
    live = {"url": server.url, "namespace": namespace}
    lake = str(tmp_path / "lake")
    both, whole, fresh = (QueueKeys(name, namespace) for name in ("both", "whole, or", "fresh"))
    write(client, both, 3, 10)
    write(client, whole, 2, 10)
    archive(spark, lake, live, once=True)
    later = write(client, both, 2, 10, first=30)
    write(client, fresh, 1, 10)

    found = history(spark, 0, NOW, lake=lake, live=live)
    assert found.columns == HISTORY.names
    expected = Counter(
        (keys.queue, row["entry"])
        for keys in (both, whole, fresh)
        for row in plain_rows(client, keys)
    )
    assert Counter((queue, entry) for queue, entry, _ in ids(found).elements()) == expected
    assert set(ids(found).values()) == {1}
    assert history(spark, 0, NOW, lake=lake).count() == 50
    assert history(spark, 0, NOW, live=live).count() == 80
    # what Redis has forgotten is in the lake still
    client.delete(whole.history)
    assert history(spark, 0, NOW, lake=lake, live=live).count() == 80
    some = history(spark, 0, NOW, lake=lake, live=live, queues=["whole, or", "fresh"])
    assert some.count() == 30

    # ranges: the end is not in it
    cut = int(later[0].split("-")[0])
    before = history(spark, 0, cut, lake=lake, live=live, queues=["both"])
    after = history(spark, cut, NOW, lake=lake, live=live, queues=["both"])
    assert ids(before) + ids(after) == Counter(
        key for key in ids(found).elements() if key[0] == "both"
    )
    assert all(int(entry.split("-")[0]) < cut for _, entry, _ in ids(before))
    assert history(spark, cut - 10, cut - 10, lake=lake, live=live).count() == 0

    # what is counted in it is read once: also where rows are looked for beside others
    kept = metrics.prepare(found, 0, NOW).cache()
    assert leaves(metrics.errors(kept)) == {"InMemoryRelation"}
    kept.unpersist()


def test_a_lake_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"lake: there is none at .*/nothing: rqueue pipeline arch"
    ):
        history(spark, 0, NOW, lake=str(tmp_path / "nothing"))


def test_page_of_what_redis_has(
    run: Callable[..., Result], server: EmbeddedRedis, namespace: str, tmp_path: Path
) -> None:
    with Queue("mail", server.url, namespace=namespace) as queue:
        settle(queue, 5)
        held = _dies(queue)
    result = run("report", "--slo-wait", "1s", "--queue", "mail", "--queue", "mial")
    said = result.output
    assert "warning: queue 'mial' has no history in this range" in result.stderr
    assert "done      5 jobs" in said
    assert "failed    1 job" in said
    page = (tmp_path / "rqueue-report.html").read_text()
    assert "mail" in page
    assert held in page
    assert "it was never to be" in page  # the cause is in Redis only


def _dies(queue: Queue) -> str:
    """Give up one job as a worker does; returns its id."""
    from rqueue.model.history_batch import pack

    queue.send("hopeless")
    consumer = queue.consumer(jobs=1, renew=False).register()
    [job] = consumer.pull()
    cause = {"kind": "exception", "type": "E", "message": "it was never to be"}
    row = {"id": [job.id], "task": "hopeless", "queue": queue.name, "outcome": "dead"}
    row |= {"error": "E", "enqueued": 1, "started": 1, "finished": 2, "worker": "w"}
    consumer.settle(reject=[(job.id, cause)], batch=pack(row), rows=1)
    consumer.close()
    return job.id


def test_what_redis_trimmed_is_said(
    spark: SparkSession,
    run: Callable[..., Result],
    server: EmbeddedRedis,
    client: redis.Redis,
    namespace: str,
    tmp_path: Path,
) -> None:
    """In text, JSON and page, from Redis alone, behind a lake, and in a lake that has a gap."""
    keys, lake = QueueKeys("busy", namespace), str(tmp_path / "lake")
    source = {"url": server.url, "namespace": namespace}
    write(client, keys, 1, 10)
    write(client, QueueKeys("calm", namespace), 1, 10)
    archive(spark, lake, source, once=True)
    assert missing(spark, 0, NOW, lake=lake, live=source) == []
    write(client, keys, 3, 10, first=10)
    until = trim(client, keys, 3)

    said = run("report", "--out", "page.html")
    assert "warning: queue 'busy': Redis trimmed 30 rows of history before" in said.stderr
    assert "Redis trimmed 30 rows" in (tmp_path / "page.html").read_text()
    document = json.loads(run("report", "--json").stdout)
    assert document["figures"]["rows"] == 20
    [gap] = document["missing"]
    assert (gap["queue"], gap["rows"], gap["until"]) == ("busy", 30, until)
    [warning] = document["warnings"]
    assert "'busy'" in warning

    def lacking(**more: Any) -> list[tuple[str, int | None, bool]]:
        found = missing(spark, more.pop("start", 0), NOW, **more)
        return [(gap.queue, gap.rows, gap.in_lake) for gap in found]

    # the lake has the first ten of them
    assert lacking(lake=lake, live=source) == [("busy", 20, False)]
    assert lacking(lake=lake) == []
    assert lacking(lake=lake, live=source, queues=["calm"]) == []
    assert lacking(live=source, start=int(until.split("-")[0]) + 1) == []
    archive(spark, lake, {**source, "failOnDataLoss": "false"}, once=True)
    assert lacking(lake=lake) == lacking(lake=lake, live=source) == [("busy", 20, True)]


@pytest.mark.long
def test_json_and_parquet_of_a_lake(
    spark: SparkSession,
    run: Callable[..., Result],
    server: EmbeddedRedis,
    client: redis.Redis,
    namespace: str,
    tmp_path: Path,
) -> None:
    lake = str(tmp_path / "lake")
    write(client, QueueKeys("q", namespace), 2, 10)
    archive(spark, lake, {"url": server.url, "namespace": namespace}, once=True)
    write(client, QueueKeys("q", namespace), 1, 10, first=20)
    options = [
        "report",
        "--lake",
        lake,
        "--json",
        "--by",
        "worker",
        "--parquet",
        str(tmp_path / "tables"),
    ]
    document = json.loads(run(*options).stdout)
    # every tenth row of `write` is a retry
    assert (document["figures"]["rows"], document["figures"]["retries"]) == (30, 3)
    assert document["sources"] == [
        f"the lake {lake}",
        f"Redis at {server.url}, from where the lake ends",
    ]
    assert [row["key"] for row in document["tables"]["by"]] == ["w-1"]
    assert not (tmp_path / "rqueue-report.html").exists()
    assert spark.read.parquet(str(tmp_path / "tables/totals")).first()["rows"] == 30
    tables = {folder.name for folder in (tmp_path / "tables").iterdir()}
    assert tables >= {*document["tables"], "totals", "fairness"}

    alone = json.loads(run("report", "--lake", lake, "--json", url="").stdout)
    assert (alone["figures"]["rows"], alone["sources"]) == (20, [f"the lake {lake}"])
    assert (
        json.loads(run("report", "--lake", lake, "--no-live", "--json").stdout)["figures"]["rows"]
        == 20
    )
    assert run("report", "--lake", lake, "--out", "-").output.startswith("<!doctype html>")
    past = json.loads(run("report", "--lake", lake, "--to", "1h", "--json").stdout)
    assert past["figures"]["rows"] == 0


def test_wrong_use(run: Callable[..., Result]) -> None:
    assert "--no-live needs a --lake" in run("report", "--no-live", code=2).output
    assert "both want stdout" in run("report", "--json", "--out", "-", code=2).output
    backwards = run("report", "--from", "1h", "--to", "2h", code=2).output
    assert "--from is not before --to: there is nothing in between" in backwards
    assert "no server: set RQUEUE_URL" in run("report", code=2, url="").output
    assert "slo-wait" in run("report", "--slo-wait", "soon", code=2).output
    assert "there is none at" in run("report", "--lake", "nowhere", code=2).output
    assert "--lake is missing" in run("archive", code=2).output
    assert "is at least 1" in run("archive", "--lake", "x", "--max-rows", "0", code=2).output
