"""The archiver is killed at random moments, and started again: each row is in the lake once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import redis
from pyspark.sql import SparkSession

from rqueue.embedded.server import EmbeddedRedis
from rqueue.pipeline.archive.archiver import archive
from rqueue.pipeline.lake import lake as lakes
from rqueue.pipeline.lake.lake import Lake
from rqueue.protocol.keys import QueueKeys
from tests.support.history import archived_once, write
from tests.support.spark import LOCAL_SETTINGS
from tests.support.spark_home import QUICK

QUEUES = ("mail", "pdf")


class Archiver:
    """`rqueue pipeline archive` as a process, with small batches one after the other."""

    def __init__(self, url: str, lake: Path, *more: str, json: bool = True) -> None:
        command = ["--url", url, "pipeline", "archive", "--lake", str(lake)]
        options = ["--interval", "50ms", "--max-rows", "400", "--master", "local[2]"]
        options += ["--json"] if json else []
        conf = {**LOCAL_SETTINGS, "spark.driver.extraJavaOptions": QUICK}
        options += [part for item in conf.items() for part in ("--conf", "=".join(item))]
        self.complaint = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rqueue.cli", *command, *options, *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if json else subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def line(self) -> dict[str, object]:
        """The next line that it prints."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        if not text:
            self.close()
            raise AssertionError(f"it ended: {self.complaint[-3000:]}")
        found: dict[str, object] = json.loads(text)
        return found

    def until(self, word: str) -> None:
        """Read lines until one has this word: of its log too, which goes to the same pipe then."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if word in line:
                return
        self.close()
        raise AssertionError(f"it ended before it said {word!r}: {self.complaint[-3000:]}")

    def kill(self, what: str) -> list[psutil.Process]:
        """SIGKILL the driver, or the JVM below it; returns all processes that there were."""
        me = psutil.Process(self.process.pid)
        family = [me, *me.children(recursive=True)]
        victim = me if what == "driver" else next(one for one in family[1:] if is_java(one))
        victim.send_signal(signal.SIGKILL)
        self.close()
        return family

    def close(self) -> str:
        """Wait until it has ended; without its JVM it does so by itself. Returns what it said."""
        said, self.complaint = self.process.communicate(timeout=300)
        return said


def is_java(process: psutil.Process) -> bool:
    try:
        return "java" in process.name()
    except psutil.NoSuchProcess:  # Spark's small helpers come and go
        return False


@contextmanager
def traffic(client: redis.Redis, seed: int) -> Iterator[None]:
    """History that grows all the while."""
    over = threading.Event()
    dice = random.Random(seed)

    def go_on() -> None:
        written = dict.fromkeys(QUEUES, 0)
        while not over.wait(dice.uniform(0.02, 0.2)):
            queue = dice.choice(QUEUES)
            rows = dice.randint(1, 30)
            write(client, QueueKeys(queue), 1, rows, first=written[queue])
            written[queue] += rows

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def survive(
    spark: SparkSession,
    server: EmbeddedRedis,
    path: Path,
    victims: Sequence[str],
    seed: int,
    patience: float = 3.0,
) -> list[int]:
    """Kill an archiver for each victim, within `patience` seconds of its first batch, and let one
    catch up; returns how many rows each left behind."""
    dice = random.Random(seed)
    left: list[int] = []
    family: list[psutil.Process] = []
    with redis.Redis.from_url(server.url) as client:
        for queue in QUEUES:
            write(client, QueueKeys(queue), 5, 10, first=10**6)
        with traffic(client, seed):
            for victim in victims:
                archiver = Archiver(server.url, path)
                while archiver.line()["event"] != "batch":
                    pass
                # no waiting for something: a moment that nobody chose
                threading.Event().wait(dice.uniform(0, patience))
                family += archiver.kill(victim)
                if victim == "driver":
                    assert archiver.complaint == "", "Spark and Java are silent"
                else:
                    assert archiver.complaint.count("\n") == 1, archiver.complaint
                    assert archiver.complaint.startswith("rqueue: Spark is gone: its Java")
                    assert archiver.process.returncode == 1
                rows = lakes.read(spark, str(path))
                assert rows.count() == rows.select("queue", "entry", "row").distinct().count()
                left.append(rows.count())
        archive(spark, str(path), {"url": server.url}, once=True)
        rows = archived_once(client, QUEUES, lakes.read(spark, str(path)))
    assert spark.read.parquet(str(path)).count() == rows
    # a driver that is killed leaves no JVM behind, and its remains are cleaned away in time
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    day = 24 * 3600.0
    Lake(spark, str(path)).clean(0, now_ms=round((os.stat(path).st_mtime + 2 * day) * 1000))
    assert leftovers(spark, path) == 0
    assert lakes.read(spark, str(path)).count() == rows
    return left


def leftovers(spark: SparkSession, path: Path) -> int:
    """Data files that belong to nothing."""
    named = {file.name for file in Lake(spark, str(path)).snapshot().files}
    data = {
        str(file.relative_to(path))
        for file in path.rglob("*.parquet")
        if "_rqueue/checkpoint" not in str(file)
    }
    assert named <= data
    return len(data - named)


def test_its_java_and_its_driver_are_killed(
    spark: SparkSession, private_server: EmbeddedRedis, tmp_path: Path
) -> None:
    left = survive(
        spark, private_server, tmp_path / "lake", ["jvm", "driver"], seed=4, patience=1.0
    )
    assert left[0] > 0  # it was killed at work


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_killed_twenty_times(
    spark: SparkSession, private_server: EmbeddedRedis, tmp_path: Path
) -> None:
    victims = ["driver", "jvm"] * 10
    left = survive(spark, private_server, tmp_path / "lake", victims, seed=20)
    assert sorted(left) == left
    assert left[-1] > left[0] > 0


@pytest.mark.long
@pytest.mark.timeout(900)
def test_it_ends_in_good_order_when_asked(
    spark: SparkSession, private_server: EmbeddedRedis, tmp_path: Path
) -> None:
    path = tmp_path / "lake"
    with redis.Redis.from_url(private_server.url) as client, traffic(client, 1):
        archiver = Archiver(private_server.url, path)
        assert archiver.line()["event"] == "batch"
        archiver.process.send_signal(signal.SIGTERM)
        said = archiver.close()
    assert (archiver.process.returncode, archiver.complaint) == (0, "")
    last = json.loads(said.splitlines()[-1])
    assert last["event"] == "end"
    assert lakes.read(spark, str(path)).count() == last["rows"]


@pytest.mark.parametrize("json", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_command_outlives_a_restart_of_redis(
    spark: SparkSession, make_server: Callable[..., EmbeddedRedis], tmp_path: Path, json: bool
) -> None:
    server, lake = make_server(config={"appendfsync": "always"}), tmp_path / "lake"
    with redis.Redis.from_url(server.url) as client:
        write(client, QueueKeys("mail"), 1, 10)
        archiver = Archiver(server.url, lake, json=json)
        archiver.until("batch")
        server.kill()
        archiver.until("waiting" if json else "trying again")
        server.start()
        archiver.until("again" if json else "going on")
        write(client, QueueKeys("mail"), 1, 10, first=10)
        archiver.until("batch")
        archiver.process.terminate()
        said = archiver.close()
        assert archiver.process.returncode == 0, said
        assert "Traceback" not in said + (archiver.complaint or "")
        assert archived_once(client, ["mail"], lakes.read(spark, str(lake))) == 20
