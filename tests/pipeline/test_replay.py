"""`rqueue pipeline replay`: dead letters and jobs of a lake, each once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector import Inspector
from rqueue.model.envelope import pack
from rqueue.model.job_info import JobInfo
from rqueue.pipeline.replay.ledger import Ledger
from rqueue.pipeline.replay.replay import (
    NO_KEYS,
    NOT_THERE,
    choose_dead,
    choose_lake,
    derived_id,
    replay,
)
from rqueue.protocol import commands
from rqueue.settings import Settings
from rqueue.spark.access import Access
from rqueue.spark.options import JobsRead, read_options
from tests.pipeline.history_rows import frame

Run = Callable[..., Result]
Read = Callable[..., Any]
OPTS = {"headers": {"tenant": "a"}, "time_limit": 60.0, "retry": {"base": 2.0}}


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


@pytest.fixture
def access(server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch) -> Access:
    monkeypatch.setenv("RQUEUE_URL", server.url)
    return Access.of(read_options(JobsRead, {}))


def make_dead(queue: Queue, jobs: dict[str, tuple[bytes, str]], **put: Any) -> None:
    """Dead letters: id -> envelope, and type of the error."""
    ids = list(jobs)
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        queue.enqueue_puts([commands.Put(id_, jobs[id_][0], **put) for id_ in some])
        with queue.consumer(jobs=len(some) + 99, renew=False) as one:
            held = one.pull()
            mine = [job for job in held if job.id in jobs]
            causes = [(job, {"type": jobs[job.id][1], "kind": "exception"}) for job in mine]
            one.settle(reject=causes)  # leaving releases the others
            assert sorted(job.id for job in mine) == sorted(some)


@pytest.fixture
def graves(queue: Queue) -> Queue:
    """d0 to d9: the even ones by TimeoutError, the others by ValueError."""
    make_dead(
        queue,
        {
            f"d{n}": (
                pack("app.send", [n], {"x": None}, OPTS),
                "TimeoutError" if n % 2 == 0 else "ValueError",
            )
            for n in range(10)
        },
        priority=7,
        max_deliveries=3,
        max_crashes=2,
    )
    return queue


def waiting(queue: Queue) -> list[JobInfo]:
    with Inspector(redis=queue.redis, settings=queue.settings) as inspector:
        return list(inspector.jobs(queue.name, "ready", limit=500).jobs)


TIMEOUTS = ("--where", "error = 'TimeoutError'")


def test_without_yes_it_only_says(run: Run, read: Read, graves: Queue, away: Path) -> None:
    namespace = graves.settings.namespace
    said = run("replay", "-q", graves.name, *TIMEOUTS, "--rate", "50", "--namespace", namespace)
    assert "would enqueue 5 jobs again" in said.stdout
    assert f"5 of task app.send in queue '{graves.name}'" in said.stdout
    shown = [line.split()[1] for line in said.stdout.splitlines() if line.startswith(graves.name)]
    assert shown == ["d0", "d2", "d4", "d6", "d8"]
    command = said.stdout.splitlines()[-1]
    assert "--where 'error = '\"'\"'TimeoutError'\"'\"''" in command
    assert command.endswith("--yes") and "--rate 50" in command and "--name auto-" in command
    assert f"--namespace {namespace}" in command
    assert graves.counts().ready == 0 and not (away / "rqueue-replays").exists()
    found = read("replay", "-q", graves.name, *TIMEOUTS)
    assert (found["replayable"], found["dry_run"]) == (5, True)
    assert found["name"] in command
    assert [one["id"] for one in found["sample"]] == ["d0", "d2", "d4", "d6", "d8"]


@pytest.mark.each_spark(cluster="long")
def test_each_comes_again_as_it_was(run: Run, read: Read, graves: Queue) -> None:
    done = read("replay", "-q", graves.name, *TIMEOUTS, "--name", "again", "--yes")
    assert (done["jobs"], done["replayed_before"], done["not_replayable"]) == (5, 0, {})
    jobs = waiting(graves)
    assert [job.args for job in jobs] == [[0], [2], [4], [6], [8]], "in their order"
    for job in jobs:
        old = job.opts["headers"]["replay_of"]
        assert old == f"d{job.args[0]}" and job.id == derived_id("again", graves.name, old)
        assert (job.task, job.kwargs, job.level) == ("app.send", {"x": None}, 7)
        assert (job.max_deliveries, job.max_crashes) == (3, 2)
        assert job.opts == {**OPTS, "headers": {"tenant": "a", "replay_of": old}}
    assert graves.counts().dead == 10, "they stay unless --purge says otherwise"


def test_again_it_does_nothing(run: Run, read: Read, graves: Queue, away: Path) -> None:
    args = ["replay", "-q", graves.name, *TIMEOUTS]
    assert read(*args, "--yes")["jobs"] == 5
    # Redis has forgotten: what the jobs were, that they ended, and what was written
    graves.redis.delete(graves.keys.ended, graves.keys.ended_old)
    for key in graves.redis.scan_iter(match=graves.keys.base + "w*"):
        graves.redis.delete(key)
    again = read(*args, "--yes")
    assert (again["jobs"], again["replayed_before"]) == (0, 5)
    assert graves.counts().ready == 5
    assert "5 more were replayed before" in run(*args).stdout
    # one more has died since: that one comes
    make_dead(graves, {"late": (pack("app.send"), "TimeoutError")})
    more = read(*args, "--yes")
    assert (more["jobs"], more["replayed_before"]) == (1, 5)
    assert len(list((away / "rqueue-replays").rglob("*.jsonl"))) == 2
    # the same choice in other words is another replay, which is said
    words = ["replay", "-q", graves.name, "--where", "error='TimeoutError'"]
    dry = read(*words)
    assert dry["replayed_elsewhere"] == {more["name"]: 6}
    said = run(*words).stderr
    assert f"warning: 6 jobs of these were replayed before as '{more['name']}', and would" in said
    assert read(*args)["replayed_elsewhere"] == {}
    other = read(*args, "--yes", "--name", "other")
    assert other["jobs"] == 6


def test_what_was_enqueued_and_not_noted_is_not_enqueued_again(
    run: Run, read: Read, graves: Queue, away: Path
) -> None:
    """A kill between the enqueue and the ledger; meanwhile the jobs ended and were forgotten."""
    args = ["replay", "-q", graves.name, *TIMEOUTS, "--yes"]
    assert read(*args)["jobs"] == 5
    for line in (away / "rqueue-replays").rglob("*.jsonl"):
        line.unlink()
    with graves.consumer(jobs=9, renew=False) as one:
        one.settle(ack=one.pull())
    graves.redis.delete(graves.keys.ended, graves.keys.ended_old)
    again = read(*args)
    assert (again["jobs"], again["replayed_before"]) == (0, 5)
    assert graves.counts().ready == 0


def test_purge_drops_what_was_replayed(read: Read, graves: Queue, away: Path) -> None:
    args = ["replay", "-q", graves.name, "--yes"]
    assert read(*args, *TIMEOUTS)["purged"] == 0
    # the others now, and what a replay of this name did before
    where = ["--where", "error = 'ValueError'", "--name", "p", "--purge"]
    assert read(*args, *where)["purged"] == 5
    assert graves.counts().dead == 5
    done = read(*args, *TIMEOUTS, "--purge")
    assert (done["jobs"], done["purged"]) == (0, 5), "left over by a run that was killed"
    assert graves.counts().dead == 0 and graves.counts().ready == 10


def test_who_died_again_is_not_purged(read: Read, graves: Queue) -> None:
    args = ["replay", "-q", graves.name, *TIMEOUTS, "--yes"]
    assert read(*args)["jobs"] == 5
    with Inspector(redis=graves.redis, settings=graves.settings) as inspector:
        inspector.requeue_dead(graves.name)
    with graves.consumer(jobs=99, renew=False) as one:
        dying = [job for job in one.pull() if job.id == "d0"]
        one.settle(reject=[(dying[0], {"type": "TimeoutError"})])
    done = read(*args, "--purge")
    assert (done["jobs"], done["purged"], graves.counts().dead) == (0, 0, 1)


def test_the_rate_is_held(read: Read, graves: Queue) -> None:
    args = ["replay", "-q", graves.name, "--where", "true", "--yes", "--rate", "5"]
    assert read(*args)["jobs"] == 10
    moments = [job.enqueued_ms for job in waiting(graves)]
    assert 1000 <= max(moments) - min(moments) < 4000, "two steps of 5, a second between them"


def test_the_oldest_and_into_another_queue(
    read: Read, graves: Queue, server: EmbeddedRedis
) -> None:
    other = f"{graves.name}-other"
    args = ("replay", "-q", graves.name, "--where", "true", "--to", other, "--yes")
    done = read(*args, "--limit", "3")
    assert (done["chosen"], done["jobs"]) == (3, 3)
    again = read(*args, "--limit", "3")
    assert (again["jobs"], again["replayed_before"]) == (0, 3), "three in all, however often"
    with Queue(other, server.url) as queue:
        assert [job.args for job in waiting(queue)] == [[0], [1], [2]]


def test_what_cannot_be_read_is_counted(run: Run, read: Read, queue: Queue) -> None:
    make_dead(queue, {"good": (pack("t"), "E"), "bad": (b"[1,", "E")})
    shown = run("replay", "-q", queue.name, "--where", "true")
    assert "would enqueue 1 job again" in shown.stdout
    assert "1 job cannot be replayed" in shown.stderr
    done = read("replay", "-q", queue.name, "--where", "true", "--yes", code=1)
    assert done["jobs"] == 1 and sum(done["not_replayable"].values()) == 1


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("eror = 'x'", ["eror", "cannot be resolved"]),
        ("error = ", ["Spark:", "yntax"]),
        ("task", ["Spark:", "boolean"]),
        ("id = = 1", ["yntax"]),
    ],
)
def test_wrong_sql_is_said(run: Run, graves: Queue, where: str, words: list[str]) -> None:
    said = run("replay", "-q", graves.name, "--where", where, code=2)
    assert all(word in said.stderr for word in words), said.stderr
    assert said.stderr.count("\n") == 1 and "Traceback" not in said.output


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "--where"),
        (["--where", "true", "--from", "lake"], "--lake"),
        (["--where", "true", "--since", "1d"], "--since"),
        (
            ["--where", "true", "--from", "lake", "--lake", "x", "--since", "1h", "--until", "2h"],
            "--since is not before --until",
        ),
        (["--where", "true", "--rate", "-1"], "rate"),
        (["--where", "true", "--name", "../x"], "name"),
        (["--where", "true", "--limit", "0"], "limit"),
        (["--where", "true", "--to", ""], "--to"),
        (["--where", "true", "--to", "a\tb"], "queue name"),
    ],
)
def test_used_wrongly(run: Run, args: list[str], word: str) -> None:
    assert word in run("replay", *args, code=2).stderr


# -- of the lake -----------------------------------------------------------------------------------


def lake(spark: SparkSession, queue: str) -> DataFrame:
    body = pack("app.send", ["of the lake"], {}, OPTS).decode()
    row: dict[str, Any] = {"queue": queue, "task": "app.send", "outcome": "dead", "level": 5}
    rows = [
        # the envelope stands in one of its rows
        {**row, "id": "kept", "at": 10, "outcome": "retry", "body": body},
        {**row, "id": "kept", "at": 20, "body": body},
        {**row, "id": "d3", "at": 30},
        {**row, "id": "gone", "at": 40},
        {**row, "id": "fine", "at": 50, "outcome": "ack", "body": body},
    ]
    return frame(spark, rows)


def test_jobs_of_the_lake(
    spark: SparkSession, graves: Queue, access: Access, tmp_path: Path
) -> None:
    book = Ledger(spark, str(tmp_path), "l")
    rows = lake(spark, graves.name)
    chosen = choose_lake(spark, access, rows, "outcome IN ('dead', 'retry')", book)
    summary = chosen.summary()
    assert (summary.chosen, summary.replayable) == (3, 2)
    assert summary.refused == {NOT_THERE: 1}
    assert [one["id"] for one in chosen.sample()] == ["kept", "d3"]
    done = replay(chosen, access, "l")
    assert (done.jobs, done.before, done.refused) == (2, 0, {})
    first, second = waiting(graves)
    # each level in its order: the dead letter is of level 7, the row of the lake of level 5
    assert (first.args, first.level) == ([3], 7)
    assert (second.args, second.level) == (["of the lake"], 5)
    assert second.opts["headers"] == {"tenant": "a", "replay_of": "kept"}
    assert second.opts["retry"] == OPTS["retry"]
    again = choose_lake(spark, access, rows, "outcome IN ('dead', 'retry')", book)
    assert again.summary().replayed == 2
    assert replay(again, access, "l").jobs == 0


def test_forged_envelopes_are_not_signed_anew(
    spark: SparkSession, queue: Queue, access: Access, tmp_path: Path
) -> None:
    keys = {"k1": "0123456789abcdef"}
    signer = Settings(signing_keys=keys).signer
    assert signer is not None
    good = signer.sign(queue.name, "good", pack("t", [1]))
    make_dead(queue, {"good": (good, "E"), "other": (good, "E"), "plain": (pack("t"), "E")})
    signing = replace(access, signing_keys=keys)
    book = Ledger(spark, str(tmp_path), "s")
    done = replay(choose_dead(spark, signing, "true", book, queues=[queue.name]), signing, "s")
    assert done.jobs == 1
    assert {reason.rpartition(" ")[2] for reason in done.refused} == {"Forged", "Unsigned"}
    (job,) = waiting(queue)
    assert (job.signed_with, job.args) == ("k1", [1])
    bare = Ledger(spark, str(tmp_path), "bare")
    keyless = replay(choose_dead(spark, access, "true", bare, queues=[queue.name]), access, "bare")
    assert (keyless.jobs, keyless.refused) == (1, {NO_KEYS: 2}), "the unsigned one alone"


# -- killed ----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.timeout(400)
def test_killed_in_the_middle_each_comes_once(
    queue: Queue, server: EmbeddedRedis, tmp_path: Path
) -> None:
    count = 1500
    make_dead(queue, {f"d{n:04}": (pack("t", [n]), "E") for n in range(count)})
    command = [sys.executable, "-m", "rqueue.cli", "--url", server.url, "pipeline", "replay"]
    command += ["--where", "true", "-q", queue.name, "--master", "local[1]", "--json", "--yes"]
    command += ["--ledger", str(tmp_path), "--purge"]
    first = subprocess.Popen(
        [*command, "--rate", "200"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with queue.consumer(jobs=1, renew=False) as watch:
        try:
            assert any(watch.pull() or watch.wait(10) for _ in range(18)), "it enqueues"
        finally:
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
    there = queue.counts().ready
    assert 0 < there < count, "it was killed in the middle"
    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert second.returncode == 0, second.stderr
    done = json.loads(second.stdout)
    assert (queue.counts().ready, queue.counts().dead) == (count, 0)
    assert done["jobs"] == count - there
    numbers = [
        orjson.loads(value.partition(b";")[2])[1][0]
        for value in queue.redis.hgetall(queue.keys.jobs).values()  # type: ignore[union-attr]
    ]
    assert sorted(numbers) == list(range(count))
