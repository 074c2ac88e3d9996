"""`rqueue pipeline plan`, on real history."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from tests.support.command_line import program
from tests.support.history import T0, settle

Run = Callable[..., Result]
Read = Callable[..., Any]
QUICK = ("--repetitions", "5", "--jobs", "2000", "--target", "2s")


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


@pytest.fixture
def busy(queue: Queue) -> Queue:
    """400 jobs at random, two a second, of one second each: two workers busy on average."""
    random = np.random.default_rng(1)
    at = T0 + np.cumsum(random.exponential(500, 400)).astype(int)
    settle(
        queue,
        400,
        enqueued=at.tolist(),
        started=(at + 20).tolist(),
        finished=(at + 1020).tolist(),
    )
    return queue


def test_what_it_says(run: Run, read: Read, busy: Queue, away: Path) -> None:
    (found,) = read("plan", "-q", busy.name, *QUICK, "--slots", "2")
    assert (found["queues"], found["target_ms"], found["percentile"]) == ([busy.name], 2000, 95)
    assert found["measured"]["runs"] == 400
    assert found["measured"]["busiest"]["erlangs"] == pytest.approx(2.0, rel=0.15)
    assert found["measured"]["busiest"]["run_ms"] == 1000
    assert 3 <= found["workers"] <= 5
    assert found["workers_by_load"]["1"] == found["workers"] < found["workers_by_load"]["2"]
    assert found["scaling"]["max_replicas"] == -(-found["workers"] // 2)
    said = run("plan", "-q", busy.name, *QUICK, "--slots", "2", "--plot", "plan.svg")
    assert f"{found['workers']} workers hold p95 of the wait within 2.0s" in said.stdout
    assert "parameter sets" in said.stderr
    picture = ET.fromstring((away / "plan.svg").read_text())
    texts = [element.text or "" for element in picture.iter() if element.tag.endswith("text")]
    assert "target 2 s" in texts and f"{found['workers']} workers" in texts


def test_the_rule_is_all_that_is_printed(run: Run, busy: Queue) -> None:
    said = run("plan", "-q", busy.name, *QUICK, "--keda", url="")
    assert said.stdout.splitlines()[1] == "apiVersion: keda.sh/v1alpha1"
    assert f'listName: "rqueue:{{{busy.name}}}:jobs"' in said.stdout
    assert said.stderr == ""


def test_a_contradiction_is_said(run: Run, queue: Queue) -> None:
    """Each job waited five seconds for a worker that had nothing to do."""
    at = T0 + np.arange(400) * 1000
    settle(
        queue,
        400,
        enqueued=at.tolist(),
        started=(at + 5000).tolist(),
        finished=(at + 5200).tolist(),
        worker="host:1:0-aaaaaa",
    )
    said = run("plan", "-q", queue.name, *QUICK, code=1)
    assert "the model says p95 of the wait was 0ms, measured was 5.0s: do not trust" in said.stderr
    assert said.stderr.splitlines()[-1].startswith("rqueue: queues 'test")
    assert "1 worker holds p95" in said.stdout
    rule = run("plan", "-q", queue.name, *QUICK, "--keda", code=1)
    assert rule.stdout == "" and "do not trust" in rule.stderr
    document = json.loads(run("plan", "-q", queue.name, *QUICK, "--json", code=1).stdout)
    assert (document[0]["trusted"], document[0]["check"]["workers"]) == (False, 1)


def test_a_queue_without_history(run: Run, queue_name: str) -> None:
    assert "too few jobs ran" in run("plan", "-q", queue_name, *QUICK, code=1).stderr


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--target", "soon"], "target"),
        (["--percentile", "100"], "percentile"),
        (["--growth", "-1"], "loads"),
        (["--slots", "0"], "--slots"),
        (["--keda", "--json"], "not both"),
        (["--from", "yesterday"], "from"),
        (["--conf", "memory"], "--conf"),
    ],
)
def test_used_wrongly(run: Run, queue_name: str, args: list[str], word: str) -> None:
    assert word in run("plan", "-q", queue_name, *args, code=2).stderr


def test_a_server_that_is_not_there(run: Run) -> None:
    said = run("plan", *QUICK, url="redis://127.0.0.1:1/0", code=4)
    assert "Traceback" not in said.output and said.stderr.count("\n") == 1


def test_a_missing_java_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rqueue.cli.pipeline.history_options._active", lambda: None)
    monkeypatch.setattr("rqueue.spark.java._candidates", lambda _environ: iter(()))
    said = run("plan", code=6)
    assert (said.stdout, said.stderr.count("\n")) == ("", 1)
    assert "Java 17" in said.stderr


def test_a_missing_spark_is_one_line(tmp_path: Path) -> None:
    hide = "import importlib.metadata as m\nreal = m.version\ndef version(name):\n"
    hide += "    if name == 'pyspark': raise m.PackageNotFoundError(name)\n    return real(name)\n"
    (tmp_path / "sitecustomize.py").write_text(hide + "m.version = version\n")
    said = program(
        *("--url", "redis://127.0.0.1:1", "pipeline", "plan"),
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (said.returncode, said.stdout, said.stderr.count("\n")) == (6, "", 1)
    assert "pip install 'rqueue[spark]'" in said.stderr
