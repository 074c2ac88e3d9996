"""Looking at what comes and what became of it: browse, history and stats."""

import json
import os
import subprocess
import sys
from datetime import datetime
from time import time
from types import SimpleNamespace

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.history_batch import pack
from rqueue.protocol import commands
from rqueue.tasks.options import Options
from rqueue.transport.redis_client import execute

# -- history and stats -----------------------------------------------------------------------------
from tests.cli.looking import Make, Read, Run, fill


def work(one: Consumer, ids: list[str], started: int) -> None:
    """Settle as a worker does, with rows of history: waited 100 ms, ran 20 ms."""
    columns = {
        "id": ids,
        "task": "app.t",
        "queue": one.keys.queue,
        "level": 4,
        "outcome": "ack",
        "enqueued": started - 100,
        "acquired": started,
        "started": started,
        "finished": started + 20,
        "worker": one.worker,
    }
    one.settle(ack=ids, batch=pack(columns), rows=len(ids))


def test_history(run: Run, queue: Queue, consumer: Make) -> None:
    fill(queue, 5)
    one = consumer(jobs=5)
    jobs = [job.id for job in one.pull()]
    work(one, jobs[:3], one.now)
    queue.cancel(jobs[3])
    rows = [json.loads(x) for x in run("history", queue.name, "--json").stdout.splitlines()]
    assert [row["id"] for row in rows] == jobs[:4]
    assert [row["outcome"] for row in rows] == ["ack", "ack", "ack", "cancelled"]
    assert datetime.fromisoformat(rows[0]["started"]).tzinfo is not None
    assert rows[3]["started"] is None
    lines = run("history", queue.name, "-n", "2").stdout.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == jobs[2:4]
    assert "100ms" in lines[1] and "20ms" in lines[1]
    only = run("history", queue.name, "--outcome", "cancelled", "--json").stdout
    assert json.loads(only)["id"] == jobs[3]
    assert len(run("history", queue.name, "--id", jobs[1]).stdout.splitlines()) == 2
    assert len(run("history", queue.name, "--since", "1h").stdout.splitlines()) == 5
    assert len(run("history", queue.name, "--task", "app.t", "-n", "1").stdout.splitlines()) == 2
    assert len(run("history", queue.name, "-n", "0").stdout.splitlines()) == 1


def test_an_age_is_one_by_the_clock_of_redis(
    run: Run, queue: Queue, consumer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("app.t")
    one = consumer(jobs=1)
    (job,) = one.pull()
    one.reject(job, "no such card")
    host = SimpleNamespace(time=lambda: time() + 3 * 3600)
    monkeypatch.setattr("rqueue.cli.dead.time", host)
    assert job.id in run("history", queue.name, "--since", "1h").stdout
    assert job.id in run("dead", "list", queue.name, "--since", "1h").stdout
    assert "purged 0" in run("dead", "purge", queue.name, "--until", "1h", "--yes").stdout
    assert (
        "would requeue 1" in run("dead", "requeue", queue.name, "--since", "1h", "--dry-run").stdout
    )


def test_history_follows(server: EmbeddedRedis, queue: Queue) -> None:
    fill(queue, 3)
    queue.cancel("j000")
    command = [sys.executable, "-m", "rqueue.cli", "--url", server.url, "history", queue.name]
    with subprocess.Popen(
        [*command, "-f", "--json"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as follower:
        assert follower.stdout
        assert json.loads(follower.stdout.readline())["id"] == "j000"
        for id_ in ("j001", "j002"):
            queue.cancel(id_)
            assert json.loads(follower.stdout.readline())["id"] == id_
        follower.terminate()


def test_stats(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 2)
    report = read("stats", queue.name, "-i", "1ms")
    assert report["queue"]["ready"] == 2
    assert report["rates"]["acked"] == 0
    assert report["wait_ms"] is None
    assert report["drain_s"] is None
    lines = run("stats", queue.name, "-i", "1ms").stdout.splitlines()
    assert lines[0].split()[:3] == ["queue", "ready", "oldest"]
    assert lines[1].split()[:2] == [queue.name, "2"]
    assert len(read("stats", queue.name, queue.name, "-i", "1ms")) == 2


def test_stats_want_an_interval(run: Run, queue: Queue) -> None:
    assert run("stats", queue.name, "-i", "0", code=2).stdout == ""


def test_stats_watch(server: EmbeddedRedis, queue: Queue, consumer: Make) -> None:
    fill(queue, 3)
    one = consumer(jobs=5)
    jobs = [job.id for job in one.pull()]
    command = [sys.executable, "-m", "rqueue.cli", "--url", server.url, "stats", queue.name]
    with subprocess.Popen(
        [*command, "--watch", "--json", "-i", "50ms"], stdout=subprocess.PIPE
    ) as watcher:
        assert watcher.stdout
        assert json.loads(watcher.stdout.readline())["rates"]["acked"] == 0
        work(one, jobs, one.now)
        reports = (json.loads(line) for line in watcher.stdout)
        report = next(report for report in reports if report["rates"]["acked"])
        watcher.terminate()
    assert report["wait_ms"]["p50"] == 100
    assert report["run_ms"]["p99"] == 20
    assert report["tasks"] == {"app.t": 3}


def test_a_job_that_cost_workers_says_so(run: Run, queue: Queue, consumer: Make) -> None:
    queue.configure(max_crashes=1)
    for id_, attempts in (("crashes", 10), ("attempts", 1)):
        queue.send("t", options=Options(id=id_, max_deliveries=attempts))
        one = consumer(name=id_, jobs=1)
        one.pull()
        cause = b'{"kind":"crash","type":"SIGSEGV","message":"killed","at":7,"worker":"w"}'
        execute(queue.redis, commands.reclaim(queue.keys, id_, cause, [commands.Ran(id_)]))
    assert "it cost 1 worker process, all that max_crashes allows" in run("show", "crashes").stdout
    assert "its attempts are exhausted" in run("show", "attempts").stdout
    assert "crashes: SIGSEGV" in run("dead", "list", queue.name).stdout


def test_a_since_that_is_no_time_prints_no_head(run: Run, queue: Queue) -> None:
    fill(queue, 1)
    done = run("history", queue.name, "--since", "yesterday", code=2)
    assert done.stdout == "" and "yesterday" in done.stderr


def test_browse_follows(server: EmbeddedRedis, run: Run, queue: Queue) -> None:
    fill(queue, 3)
    assert [line.split()[-2] for line in run("browse", queue.name).stdout.splitlines()[1:]] == [
        "j000",
        "j001",
        "j002",
    ]
    assert len(run("browse", queue.name, "-n", "1", "--task", "app.t").stdout.splitlines()) == 2
    assert len(run("browse", queue.name, "--task", "none").stdout.splitlines()) == 1
    command = [sys.executable, "-m", "rqueue.cli", "--url", server.url, "browse", queue.name]
    with subprocess.Popen(
        [*command, "-f", "--json"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as browser:
        assert browser.stdout
        for id_ in ("j000", "j001", "j002"):
            assert json.loads(browser.stdout.readline())["id"] == id_
        for id_ in ("j003", "j004"):
            queue.send("app.t", [1], None, Options(id=id_))
            assert json.loads(browser.stdout.readline())["id"] == id_
        browser.terminate()
    assert queue.counts().ready == 5
