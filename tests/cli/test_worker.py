"""`rqueue worker` builds the pool that was asked for; a real one runs jobs; so does the bench."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue_workers.spec import PoolSpec

Run = Callable[..., Result]
Command = Callable[..., "subprocess.CompletedProcess[str]"]

TASKS = """
from rqueue.tasks.decorator import task

@task(name="app.add")
def add(a: int, b: int) -> int:
    return a + b

@task(name="app.fail", retry=None)
def fail() -> None:
    raise ValueError("on purpose")
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[PoolSpec]:
    """The pools that were to be run, instead of running them."""
    pools: list[PoolSpec] = []

    def run_pool(spec: PoolSpec) -> int:
        pools.append(spec)
        return 3

    monkeypatch.setattr("rqueue_workers.run.run_pool", run_pool)
    return pools


def test_defaults(run: Run, started: list[PoolSpec]) -> None:
    run("worker", "app.tasks", url="redis://h:1/0", code=3)
    (pool,) = started
    assert pool.worker.app == ("app.tasks",)
    assert pool.worker.queues == ()
    assert pool.worker.settings.url == "redis://h:1/0"
    assert pool.processes == 2
    assert not pool.worker.strict


@pytest.mark.parametrize(
    ("url", "warned"), [("redis://app:secret@h:1/0", True), ("redis://app@h:1/0", False)]
)
def test_a_password_on_the_command_line_is_warned_of(
    run: Run, started: list[PoolSpec], url: str, warned: bool
) -> None:
    said = run("worker", "app.tasks", url=url, code=3).stderr
    assert ("the password in --url" in said) is warned
    assert "secret" not in said


def test_all_options(run: Run, started: list[PoolSpec]) -> None:
    options = {
        "processes": "4",
        "threads": "8",
        "async-slots": "50",
        "prefetch": "7",
        "priority": "-3",
        "max-jobs": "1000",
        "max-memory": "512MB",
        "drain": "1m",
        "lease": "10s",
        "time-limit": "1h",
        "soft-time-limit": "50m",
        "name": "mine",
        "log-level": "error",
        "log-format": "json",
    }
    flat = [part for name, value in options.items() for part in (f"--{name}", value)]
    args = ["worker", "a,b", "x", "y", *flat, "--strict", "--quiet", "--namespace", "ns"]
    run(*args, url="redis://h:1/0", code=3)
    (pool,) = started
    worker = pool.worker
    assert (worker.app, worker.queues) == (("a", "b"), ("x", "y"))
    assert (pool.processes, worker.threads, worker.async_slots) == (4, 8, 50)
    assert (worker.prefetch, worker.priority, worker.strict) == (7, -3, True)
    assert (worker.max_jobs, worker.max_rss, worker.drain) == (1000, 512 * 1024**2, 60.0)
    assert (worker.time_limit, worker.soft_time_limit, worker.name) == (3600.0, 3000.0, "mine")
    assert (worker.settings.lease_ms, worker.settings.namespace) == (10_000, "ns")
    assert (pool.quiet, pool.log_level, pool.log_format) == (True, "error", "json")


def test_a_pool_file(run: Run, started: list[PoolSpec], away: Path) -> None:
    (away / "pool.toml").write_text('app = "app.tasks"\nprocesses = 5\nurl = "redis://f:1/0"\n')
    run("worker", "--pool-file", "pool.toml", "--threads", "2", url=None, code=3)
    (pool,) = started
    assert (pool.processes, pool.worker.threads) == (5, 2)
    assert pool.worker.settings.url == "redis://f:1/0"


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "app.tasks"),
        (["a", "--processes", "0"], "processes"),
        (["a", "--max-memory", "much"], "max_memory"),
        (["a", "--drain", "soon"], "drain"),
        (["a", "q", "q"], "twice"),
        (["--pool-file", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_used_wrongly(run: Run, started: list[PoolSpec], args: list[str], word: str) -> None:
    assert word in run("worker", *args, url="redis://h:1/0", code=2).stderr
    assert started == []


def test_a_real_pool(server: EmbeddedRedis, queue: Queue, away: Path, command: Command) -> None:
    (away / "app.py").write_text(TASKS)
    environment: dict[str, Any] = {**os.environ, "RQUEUE_URL": server.url, "PYTHONPATH": str(away)}
    with subprocess.Popen(
        [sys.executable, "-m", "rqueue.cli", "worker", "app", queue.name, "--processes", "1"],
        env=environment,
        stderr=subprocess.PIPE,
    ) as pool:
        wait = ["-q", queue.name, "--wait", "30s"]
        done = command("enqueue", "app.add", "19", "23", *wait, env=environment)
        assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr
        failed = command("enqueue", "app.fail", "--max-deliveries", "1", *wait, env=environment)
        assert failed.returncode == 1
        assert "ValueError: on purpose" in failed.stderr
        listed = json.loads(command("consumers", queue.name, "--json", env=environment).stdout)
        assert [facts["state"] for facts in listed] == ["interested"]
        checked = command("doctor", queue.name, env=environment)
        assert checked.returncode == 0, checked.stdout
        pool.send_signal(signal.SIGTERM)
        pool.communicate(timeout=30)
    assert pool.returncode == 0
    rows = command("history", queue.name, "--json", env=environment).stdout.splitlines()
    assert [json.loads(row)["task"] for row in rows] == ["app.add", "app.fail"]


def test_the_bench_measures_and_cleans_up(
    run: Run, make_server: Callable[..., EmbeddedRedis]
) -> None:
    server = make_server(port=0)
    args = ["bench", "-n", "300", "--singles", "5", "--processes", "1", "--json"]
    report = json.loads(run(*args, url=server.tcp_url).stdout)
    assert report["jobs"] == report["wait_ms"]["jobs"] == 300
    assert report["drain_per_s"] > 0 and report["enqueue_per_s"] > 0
    assert report["single_ms"]["jobs"] == 5
    assert json.loads(run("queues", "--json", url=server.tcp_url).stdout) == []
    run("bench", "-n", "0", url=server.tcp_url, code=2)
