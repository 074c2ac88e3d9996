"""A real Spark for the tests: sessions that many tests share, on this machine alone.

`spark` is a session on local[2]; with the mark `each_spark` a test runs on it and then on a
standalone cluster, whose master and two workers are processes on the loopback interface; with
`each_spark(cluster="long")` it runs there only when tests of minutes are asked for. `cluster_spark`
is that one only. A process can have one Spark context, so what runs on the cluster comes last.
Nothing of Spark is imported or started before a test asks for it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from rqueue.embedded.child_process import KeptProcess
from tests.support.spark_home import QUICK, spark_home, use_spark_home
from tests.support.spark_python import SparkPython

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
LOCAL, CLUSTER = "local", "cluster"
LASTING = "-Xms1g -Xmn400m -Djdk.lang.Process.launchMechanism=VFORK"
"""For the Java of all tests, beside `QUICK`: all its memory at once, most of it for what is young;
and Hadoop's calls of `chmod` and `ls`, two or three for each file, started without a helper."""
WORKERS = 2

TIMEOUT = 240
"""Seconds that a test on Spark may take: the first one starts it."""

_COMMON = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.executorEnv.PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'workers'}",
}
LOCAL_SETTINGS = _COMMON | {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""For a few rows a plan costs more than to run it. Spark interprets plans, rather than to make Java
of each of them, plans once and not again behind each shuffle, and derives no conditions from
others. On the cluster, and in most processes that tests start, it does as it always does.
Nowhere it notes where each column was made, as for rqueue's commands: five calls of Java each."""

_CLUSTER_SETTINGS = _COMMON | {"spark.executor.memory": "512m", "spark.executor.cores": "1"}

_FIXTURES = {"spark", "cluster_spark", "sparks"}


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Let what is marked `each_spark` run on both."""
    mark = metafunc.definition.get_closest_marker("each_spark")
    if mark is not None and "spark" in metafunc.fixturenames:
        marks = [pytest.mark.long] if mark.kwargs.get("cluster") == "long" else []
        both = [LOCAL, pytest.param(CLUSTER, marks=marks)]
        metafunc.parametrize("spark", both, indirect=True)


def needs_spark(item: pytest.Item) -> bool:
    """Whether a test asks for a session."""
    return not _FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def prepare(items: list[pytest.Item]) -> None:
    """Give tests on Spark time enough, and let those on the cluster come last."""
    for item in items:
        if needs_spark(item) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT))
    items.sort(key=_on_cluster)


def _on_cluster(item: pytest.Item) -> bool:
    called = getattr(item, "callspec", None)
    asked = called is not None and called.params.get("spark") == CLUSTER
    return asked or "cluster_spark" in getattr(item, "fixturenames", ())


class Cluster:
    """A standalone cluster: one master, and workers with one core each, all on 127.0.0.1.

    Every process dies with ours. `workers` may be killed by a test that then starts others.
    """

    def __init__(self, directory: Path, workers: int = WORKERS) -> None:
        from rqueue.spark.java import use_java

        use_java()
        use_spark_home()
        self.directory = directory
        self._lock = os.open(os.devnull, os.O_RDONLY)
        self._logs = 0
        self.master = self._launch("master.Master", "master", [])
        said = wait_for_line(self.master, self._log("master"), r"master at (spark://\S+)")
        self.url = said[1]
        self.workers = self.start_workers(workers)

    def start_worker(self) -> KeptProcess:
        """Start one more, and return when the master knows it."""
        return self.start_workers(1)[0]

    def start_workers(self, count: int) -> list[KeptProcess]:
        """Start some more at once, and return when the master knows them."""
        started = []
        for _ in range(count):
            self._logs += 1
            name = f"worker{self._logs}"
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.directory / name)]
            started.append((self._launch("worker.Worker", name, [*options, self.url]), name))
        for worker, name in started:
            wait_for_line(worker, self._log(name), r"Successfully registered with master")
        return [worker for worker, _ in started]

    def kill_executor(self, program: str = "java") -> None:
        """SIGKILL an executor, or its Python: what runs under a worker, by its program's name."""
        for worker in self.workers:
            for process in psutil.Process(worker.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # helpers come and go
                    if program in process.name():
                        process.kill()
                        return
        raise AssertionError(f"no {program} runs under the workers")

    def kill_worker(self) -> None:
        """SIGKILL a worker, with which its executor dies, and start another one."""
        worker = self.workers.pop(0)
        os.kill(worker.pid, signal.SIGKILL)
        worker.end(timeout=10)
        self.workers.append(self.start_worker())

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _launch(self, part: str, name: str, options: list[str]) -> KeptProcess:
        command = [
            "/usr/bin/env",
            "SPARK_LOCAL_IP=127.0.0.1",  # the pages too listen there alone
            "SPARK_DAEMON_MEMORY=256m",
            f"SPARK_DAEMON_JAVA_OPTS={QUICK}",
            f"SPARK_LOG_DIR={self.directory}",
            f"PYSPARK_PYTHON={sys.executable}",
            str(spark_home() / "bin/spark-class"),
            f"org.apache.spark.deploy.{part}",
            *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
            *options,
        ]
        return KeptProcess(command, self._log(name), self._lock, signal.SIGKILL)

    def stop(self) -> None:
        for process in [*self.workers, self.master]:
            process.end(timeout=10)
        os.close(self._lock)


def wait_for_line(process: KeptProcess, log: Path, pattern: str) -> re.Match[str]:
    """The first match in a process's log, as soon as it is there."""
    deadline = time.monotonic() + 60
    while True:
        said = log.read_text(errors="replace") if log.exists() else ""
        if found := re.search(pattern, said):
            return found
        # A log file signals nothing; the end of the process does.
        if process.exited.wait(0.05) or time.monotonic() > deadline:
            raise RuntimeError(f"{pattern!r} never came; {log} ends with:\n{said[-2000:]}")


class Sparks:
    """The session of this process, on the machine itself or on a cluster: the one last asked for
    runs; asking for the other one ends it."""

    def __init__(self) -> None:
        use_spark_home()
        self._directory = Path(tempfile.mkdtemp(prefix="rqueue-spark-"))
        self._session: SparkSession | None = None
        self._kind = ""
        self._cluster: Cluster | None = None
        self._python = SparkPython(self._directory)

    @property
    def cluster(self) -> Cluster:
        """The cluster of this process, started by who asks first."""
        if self._cluster is None:
            self._cluster = Cluster(self._directory)
        return self._cluster

    def get(self, kind: str = LOCAL) -> SparkSession:
        """The session of that kind, started or still running."""
        from rqueue.spark import session

        if kind == LOCAL:
            self._python.start()
        if self._session is None or self._kind != kind:
            self.end_session()
            conf = {
                **(_CLUSTER_SETTINGS if kind == CLUSTER else LOCAL_SETTINGS),
                "spark.driver.extraJavaOptions": f"{QUICK} {LASTING}",
                "spark.executor.extraJavaOptions": QUICK,
                "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
                "spark.local.dir": str(self._directory / "local"),
            }
            master = self.cluster.url if kind == CLUSTER else "local[2]"
            with self._python.used() if kind == LOCAL else nullcontext():
                self._session = session(master, "rqueue-tests", **conf)
            self._kind = kind
        return self._session

    def end_session(self) -> None:
        """Leave the cluster's cores to others."""
        if self._session is not None:
            self._session.stop()
            self._session = None

    def stop(self) -> None:
        self.end_session()
        if self._cluster is not None:
            self._cluster.stop()
        end_gateway()
        self._python.end()
        shutil.rmtree(self._directory, ignore_errors=True)


def end_gateway(patience: float = 30) -> None:
    """End the JVM that PySpark keeps for the process, so that none of it is left behind; within
    `patience` seconds."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    process = gateway.proc
    if process.stdin is not None:
        process.stdin.close()  # it watches this and ends
    try:
        process.wait(patience)
    finally:
        process.kill()
    SparkContext._gateway = None
    SparkContext._jvm = None


@pytest.fixture(scope="session")
def sparks() -> Iterator[Sparks]:
    """For tests that need to control the cluster's processes."""
    made = Sparks()
    yield made
    made.stop()


@pytest.fixture
def spark(sparks: Sparks, request: pytest.FixtureRequest) -> SparkSession:
    """A session shared by all tests: leave no streams running and no settings changed."""
    return sparks.get(getattr(request, "param", LOCAL))


@pytest.fixture
def cluster_spark(sparks: Sparks) -> SparkSession:
    """A session on the standalone cluster."""
    return sparks.get(CLUSTER)
