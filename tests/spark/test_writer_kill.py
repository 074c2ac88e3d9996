"""Writers whose processes are killed: each row is enqueued once, also where the jobs have ended,
and are forgotten, before it is tried again."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson
import pytest
import redis
from pyspark.sql import SparkSession

from rqueue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.commands.write_log import write_progress
from rqueue.transport.redis_client import execute
from tests.spark.test_writer import numbers, once, put_files, run_stream, write
from tests.support.spark import ROOT, Sparks


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


STREAM = """
import sys
from pathlib import Path
from rqueue import Queue
from rqueue.spark import session
from tests.spark.test_writer import run_stream
from tests.support.spark import LOCAL_SETTINGS
from tests.support.spark_home import QUICK, use_spark_home

use_spark_home()
conf = {**LOCAL_SETTINGS, "spark.driver.extraJavaOptions": QUICK}
spark = session("local[2]", **conf)
with Queue(sys.argv[1], sys.argv[2]) as queue:
    print("go", flush=True)
    run_stream(spark, queue, Path(sys.argv[3]), batchSize="20", maxRowsPerSecond=sys.argv[4])
"""


@contextmanager
def driver(queue: Queue, folder: Path, rate: int) -> Iterator[subprocess.Popen[str]]:
    """A program of its own that runs the stream; killed with all its children at the end."""
    command = [sys.executable, "-c", STREAM, queue.name, str(queue.settings.url), str(folder)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'workers'}"}
    with (folder / "log").open("w") as log:
        program = subprocess.Popen(
            [*command, str(rate)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            cwd=folder,
            text=True,
        )
    assert program.stdout is not None
    try:
        assert program.stdout.readline() == "go\n", (folder / "log").read_text()[-2000:]
        yield program
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        program.stdout.close()


def test_its_driver_is_killed(spark: SparkSession, queue: Queue, tmp_path: Path) -> None:
    """Workers end the jobs at once, and forget them, so that ids alone would not do."""
    put_files(tmp_path / "in", 0, 3, 200)
    done: Counter[int] = Counter()
    with driver(queue, tmp_path, 200) as program:
        while sum(done.values()) < 270:  # in the midst of the second epoch
            assert program.poll() is None, (tmp_path / "log").read_text()[-2000:]
            done += take_all(queue)
            time.sleep(0.005)  # what is written signals nothing
    done += take_all(queue)
    assert sum(done.values()) < 400
    run_stream(spark, queue, tmp_path)
    done += take_all(queue)
    assert done == once(range(600))


def take_all(queue: Queue) -> Counter[int]:
    """End all that waits, in one step, without a trace."""
    script = """
    local ids = redis.call('LRANGE', KEYS[1], 0, -1)
    local values = #ids > 0 and redis.call('HMGET', KEYS[2], unpack(ids)) or {}
    redis.call('DEL', KEYS[1], KEYS[2])
    return values
    """
    client: redis.Redis = queue.redis
    values = client.eval(script, 2, queue.keys.ready(4), queue.keys.jobs)
    return Counter(orjson.loads(value.partition(b";")[2])[1][0] for value in values)


@pytest.mark.long
@pytest.mark.parametrize("victim", ["executor", "its Python", "worker"])
def test_processes_of_the_cluster_are_killed(
    cluster_spark: SparkSession, sparks: Sparks, queue: Queue, victim: str
) -> None:
    """Spark tries the tasks again by itself; nobody repeats the write."""
    count = 6000
    marks = [count // 8, count // 2]  # of the first tasks, and of the second ones
    kills: dict[str, Callable[[], None]] = {
        "executor": sparks.cluster.kill_executor,
        "its Python": lambda: sparks.cluster.kill_executor("python"),
        "worker": sparks.cluster.kill_worker,
    }
    done: Counter[int] = Counter()
    over = threading.Event()

    def end_jobs() -> None:
        while not over.wait(0.005):  # what is written signals nothing
            done.update(take_all(queue))
            if marks and done.total() >= marks[0]:
                marks.pop(0)
                kills[victim]()

    jobs = threading.Thread(target=end_jobs)
    jobs.start()
    try:
        frame = numbers(cluster_spark, count, 4)
        write(frame, queue, runId="killed", batchSize=20, maxRowsPerSecond=400)
    finally:
        over.set()
        jobs.join()
    done.update(take_all(queue))
    assert marks == [], "who was to be killed was"
    assert done == once(range(count))
    assert execute(queue.redis, write_progress(queue.keys, "killed")) == (count, count)
