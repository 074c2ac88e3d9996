"""`rqueue worker --reload`: changed code runs a moment later, and costs no job anything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rqueue.cli.root import cli
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector import Inspector
from tests.support.command_line import runner
from tests.support.patience import PATIENCE
from tests.workers.pools import ROOT, eventually

APP = """
import redis
from rqueue.tasks.decorator import task

@task(name="version")
def version() -> str:
    return "{version}"

@task(name="long")
def long(url: str, key: str) -> str:
    redis.Redis.from_url(url, socket_timeout=None).blpop([key + ":go"], 60)
    return "{version}"
"""


@pytest.fixture
def pool(server: EmbeddedRedis, queue: Queue, tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "fresh.py").write_text(APP.format(version="one"))
    log = tmp_path / "pool.log"
    command = [sys.executable, "-m", "rqueue.cli", "worker", "fresh", queue.name, "--reload"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, "--processes", "1", "--url", server.url],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'workers'}"},
        )
    yield process
    if process.poll() is None:
        process.terminate()
        process.wait(PATIENCE)


def test_a_change_is_loaded_and_what_runs_may_end(
    pool: subprocess.Popen[bytes], server: EmbeddedRedis, queue: Queue, tmp_path: Path
) -> None:
    log = tmp_path / "pool.log"

    def said(words: str) -> None:
        eventually(lambda: words in log.read_text(), words)

    assert queue.enqueue("version").result(PATIENCE) == "one"
    said("is watched: the pool reloads when a file changes")
    (watcher,) = [
        child
        for child in psutil.Process(pool.pid).children()
        if "rqueue_workers.reloading" in child.cmdline()
    ]
    running = queue.enqueue("long", server.url, queue.name)
    eventually(lambda: running.state() == "held", "the long job")
    (tmp_path / "fresh.py").write_text("def broken(:\n")
    said("fresh.py changed: reloading")
    said("rolling restart given up: the new worker did not start; the old ones stay")
    (tmp_path / "fresh.py").write_text(APP.format(version="the second"))
    assert queue.enqueue("version").result(PATIENCE) == "the second"
    queue.redis.rpush(queue.name + ":go", "1")
    assert running.result(PATIENCE) == "one", "it ended where it began, uninterrupted"
    said("rolling restart is done")
    assert queue.counts().dead == 0
    rows = [int(row["attempts"]) for row in _rows(queue)]
    assert rows and set(rows) == {0}
    pool.terminate()
    assert pool.wait(PATIENCE) == 0
    eventually(lambda: not watcher.is_running(), "the end of the watcher")


def _rows(queue: Queue) -> list[dict[str, Any]]:
    with Inspector(redis=queue.redis) as inspector:
        return list(inspector.last_rows(queue.name, 50)[0])


def test_without_watchfiles_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = runner().invoke(cli, ["worker", "app", "--reload", "--url", "redis://h:1/0"])
    assert done.exit_code == 6
    assert "--reload needs watchfiles: pip install 'rqueue[reload]'" in done.output
