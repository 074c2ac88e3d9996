"""`rqueue pipeline load`: from files and a database, whole, once, and with bad rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.inspector import Inspector
from rqueue.pipeline.load import Columns, jobs_of
from rqueue.tasks.options import Options

Run = Callable[..., Result]
Read = Callable[..., Any]


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


def waiting(queue: Queue) -> list[Any]:
    """All that waits, as the inspector shows it."""
    with Inspector(redis=queue.redis, settings=queue.settings) as inspector:
        page = inspector.jobs(queue.name, "ready", limit=500)
        return list(page.jobs)


@pytest.fixture
def people(away: Path) -> Path:
    lines = ["id,name,prio"] + [f"{n},name-{n % 7},{n % 3}" for n in range(50)]
    path = away / "people.csv"
    path.write_text("\n".join([*lines, "7,name-0,1", "7,name-0,1"]) + "\n")  # said three times
    return path


CSV = (
    "--partitions",
    "2",
    "--format",
    "csv",
    "--option",
    "header=true",
    "--option",
    "inferSchema=true",
)


@pytest.mark.each_spark(cluster="long")
def test_rows_become_jobs(run: Run, read: Read, queue: Queue, people: Path) -> None:
    args = ["load", str(people), *CSV, "--task", "app.greet", "-q", queue.name, "--name", "a"]
    args += ["--args-columns", "id", "--column", "level=CAST(prio AS INT) + 4"]
    args += ["--column", "headers=map('from', name)", "--kwargs-columns", "name"]
    done = read(*args)
    assert done == {
        "name": "a",
        "rows": 52,
        "jobs": 52,
        "repeated": 0,
        "known": 0,
        "bad": 0,
        "bad_rows": None,
    }
    jobs = waiting(queue)
    assert sorted(job.args[0] for job in jobs) == sorted([*range(50), 7, 7])
    for job in jobs:
        number = job.args[0]
        assert job.task == "app.greet" and job.kwargs == {"name": f"name-{number % 7}"}
        assert job.level == 4 + number % 3
        assert job.opts == {"headers": {"from": f"name-{number % 7}"}}


def test_the_same_name_enqueues_nothing_twice(
    run: Run, read: Read, queue: Queue, people: Path
) -> None:
    args = ["load", str(people), *CSV, "--task", "t", "-q", queue.name, "--name", "b"]
    assert read(*args)["jobs"] == 52
    # also when the jobs have ended, the queue has forgotten them, and the rows come otherwise
    queue.redis.delete(queue.keys.jobs, queue.keys.ended, queue.keys.ended_old)
    head, *lines = people.read_text().splitlines()
    people.write_text("\n".join([head, *reversed(lines), "100,new,0"]) + "\n")
    again = read(*args)
    assert (again["rows"], again["jobs"], again["repeated"]) == (53, 1, 52)
    said = run(*args).stdout
    assert "0 jobs enqueued of 53 rows, 53 were loaded before" in said
    assert read(*args[:-1], "c")["jobs"] == 53


def test_arguments_are_all_columns_unless_said(run: Run, queue: Queue, people: Path) -> None:
    args = ["load", str(people), *CSV, "-q", queue.name, "--column", "task=concat('t.', name)"]
    run(*args, "--id-column", "id", "--column", "level=prio", code=2)  # not yet: ids are numbers
    shown = run(*args, "--dry-run").stdout
    assert "would enqueue 52 jobs" in shown and "name-1" in shown
    assert queue.counts().meta == {}
    run(*args, "--column", "level=prio")
    assert {job.task for job in waiting(queue)} == {f"t.name-{n}" for n in range(7)}
    assert {tuple(job.kwargs) for job in waiting(queue)} == {("id", "name")}


def test_ids_of_their_own(run: Run, read: Read, queue: Queue, away: Path) -> None:
    (away / "x.json").write_text("".join(f'{{"key": "k{n}", "n": {n}}}\n' for n in range(9)))
    queue.send("other", options=Options(id="k3"))
    args = [
        "load",
        str(away / "x.json"),
        "--partitions",
        "2",
        "--format",
        "json",
        "--task",
        "t",
        "-q",
        queue.name,
    ]
    done = read(*args, "--id-column", "key", "--args-columns", "n")
    assert (done["jobs"], done["known"], done["repeated"]) == (8, 1, 0)
    assert {job.id for job in waiting(queue)} == {f"k{n}" for n in range(9)}


def test_bad_rows_are_put_aside(run: Run, read: Read, queue: Queue, away: Path) -> None:
    rows = [{"kind": "a" if n % 5 else None, "n": n} for n in range(20)]
    (away / "x.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    args = [
        "load",
        str(away / "x.json"),
        "--partitions",
        "2",
        "--format",
        "json",
        "--column",
        "task=kind",
        "-q",
        queue.name,
    ]
    done = read(*args, "--name", "bad", code=1)
    assert (done["rows"], done["jobs"], done["bad"]) == (20, 16, 4)
    assert done["bad_rows"] == str(away / "load-bad-bad")
    aside = [
        json.loads(line)
        for path in Path(done["bad_rows"]).glob("*.json")
        for line in path.read_text().splitlines()
    ]
    assert sorted(json.loads(one["record"])["kwargs"]["n"] for one in aside) == [0, 5, 10, 15]
    assert {one["reason"] for one in aside} == {"task: is null"}
    said = run(*args, "--name", "bad", code=1)
    assert "0 jobs enqueued of 20 rows, 16 were loaded before" in said.stdout
    assert "4 rows are no jobs" in said.stderr
    # mended: what was bad is loaded, and is bad no more
    (away / "x.json").write_text("".join(json.dumps({**row, "kind": "a"}) + "\n" for row in rows))
    mended = read(*args, "--name", "bad")
    assert (mended["jobs"], mended["bad"]) == (4, 0)


def test_rows_for_which_an_expression_has_no_value_are_put_aside(
    run: Run, read: Read, queue: Queue, away: Path
) -> None:
    """The others are loaded, a null is a value, and each expression tells its own rows."""
    people = [(n, str(n % 10), str(n)) for n in range(20)]
    people += [(20, "x", "1"), (21, "", "1"), (22, "5000000000", "1"), (23, "1", "y")]
    lines = ["id,age,wait", *(f"{id},{age},{wait}" for id, age, wait in people)]
    (away / "people.csv").write_text("\n".join(lines) + "\n")
    args = ["load", str(away / "people.csv"), "--partitions", "2", "--format", "csv"]
    args += ["--option", "header=true"]
    args += ["--task", "t", "-q", queue.name, "--name", "ages", "--kwargs-columns", "id,age"]
    args += ["--column", "level=int(age) % 5 + 4", "--column", "delay=int(wait)"]
    dry = run(*args, "--dry-run")
    assert "would enqueue 21 jobs" in dry.stdout
    assert "3 rows are no jobs" in dry.stderr
    done = read(*args, code=1)
    assert (done["rows"], done["jobs"], done["bad"]) == (24, 21, 3)
    aside = {
        json.loads(one["record"])["kwargs"]["id"]: one["reason"]
        for path in Path(done["bad_rows"]).glob("*.json")
        for one in map(json.loads, path.read_text().splitlines())
    }
    level = "level: int(age) % 5 + 4 has no value for this row"
    assert aside == {
        "20": level, "22": level, "23": "delay: int(wait) has no value for this row",
    }  # fmt: skip
    lines[21], lines[23], lines[24] = "20,4,1", "22,3,1", "23,1,0"
    (away / "people.csv").write_text("\n".join(lines) + "\n")
    mended = read(*args)
    assert (mended["jobs"], mended["repeated"], mended["bad"]) == (3, 21, 0)
    with Inspector(redis=queue.redis, settings=queue.settings) as inspector:
        jobs = [
            job
            for state in ("ready", "scheduled")
            for job in inspector.jobs(queue.name, state, limit=500).jobs
        ]
    levels = {job.kwargs["id"]: job.level for job in jobs}
    assert levels == {
        id: 4 + (int(age) % 5 if age else 0)
        for id, age in (line.split(",")[:2] for line in lines[1:])
    }


def test_several_queues_in_parquet(
    read: Read, queue: Queue, server: EmbeddedRedis, spark: SparkSession, away: Path
) -> None:
    spark.range(100).selectExpr(
        f"concat('{queue.name}-', id % 2) AS tenant", "id AS n", "named_struct('x', id) AS deep"
    ).write.parquet(str(away / "p"))
    done = read(
        "load",
        str(away / "p"),
        "--partitions",
        "2",
        "--column",
        "queue=tenant",
        "--task",
        "t",
        "--args-columns",
        "n",
    )
    assert done["jobs"] == 100
    for number in (0, 1):
        with Queue(f"{queue.name}-{number}", server.url) as one:
            jobs = waiting(one)
            assert {job.args[0] for job in jobs} == set(range(number, 100, 2))
            assert jobs[0].kwargs == {"deep": {"x": jobs[0].args[0]}}


def test_a_database(read: Read, queue: Queue, spark: SparkSession, away: Path) -> None:
    system: Any = spark._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("derby.stream.error.file", str(away / "derby.log"))
    url = f"jdbc:derby:{away}/shop;create=true"
    table = spark.range(30).selectExpr("id AS order_id", "id * 10 AS amount")
    driver = "org.apache.derby.jdbc.EmbeddedDriver"
    table.write.jdbc(url, "orders", properties={"driver": driver})
    args = [
        "load",
        "--partitions",
        "2",
        "--format",
        "jdbc",
        "--option",
        f"url={url}",
        "--option",
        "dbtable=orders",
    ]
    args += ["--option", f"driver={driver}", "--task", "t", "-q", queue.name, "--name", "shop"]
    assert read(*args)["jobs"] == 30
    assert sorted(job.kwargs["amount"] for job in waiting(queue)) == list(range(0, 300, 10))
    assert read(*args)["jobs"] == 0


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--task", "t"], "--queue"),
        (["-q", "x"], "--task"),
        (["-q", "x", "--task", "t", "--args-columns", "nmae"], "did you mean name?"),
        (["-q", "x", "--task", "t", "--column", "lvel=prio"], "lvel"),
        (["-q", "x", "--task", "t", "--column", "priority=prio"], "its column is level"),
        (["-q", "x", "--task", "t", "--column", "level=prioo"], "prioo"),
        (["-q", "x", "--task", "t", "--column", "level="], "Syntax"),
        (["-q", "x", "--task", "t", "--column", "task=name"], "one way"),
        (["-q", "x", "--task", "t", "--name", "a/b"], "name"),
        (["-q", "x", "--task", "t", "--partitions", "0"], "partitions"),
        (["-q", "x", "--task", "t", "--option", "password=env:NO_SUCH"], "NO_SUCH"),
    ],
)
def test_used_wrongly(run: Run, people: Path, args: list[str], word: str) -> None:
    said = run("load", str(people), *CSV, *args, code=2)
    assert word in said.stderr and "Traceback" not in said.output


def test_sources_that_are_not_there(run: Run, queue: Queue) -> None:
    more = ["--task", "t", "-q", queue.name]
    assert "no-such.csv" in run("load", "no-such.csv", "--format", "csv", *more, code=2).stderr
    assert "nonsense" in run("load", "x", "--format", "nonsense", *more, code=1).stderr
    run("load", "x", *more, url="redis://127.0.0.1:1/0", code=4)


def test_a_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from rqueue.cli.pipeline.load import _value

    monkeypatch.setenv("PGPASSWORD", "secret")
    assert _value("env:PGPASSWORD") == "secret"
    assert _value("header") == "header"


def test_columns_with_any_name(spark: SparkSession) -> None:
    source = spark.createDataFrame([(1, 2)], ["a.b", "c`d"])
    jobs = jobs_of(source, Columns(queue="q", task="t", args=["c`d"]))
    assert jobs.first().asDict(recursive=True) == {  # type: ignore[union-attr]
        "args": {"c`d": 2},
        "kwargs": {"a.b": 1},
        "queue": "q",
        "task": "t",
    }
    with pytest.raises(ConfigError, match="no row"):
        jobs_of(source, Columns(queue="q"))


@pytest.mark.long
@pytest.mark.timeout(400)
def test_killed_it_goes_on(queue: Queue, server: EmbeddedRedis, away: Path) -> None:
    """A real process, killed while it writes; a second run of the same command does the rest."""
    with (away / "many.json").open("w") as file:
        file.writelines(f'{{"n": {n}}}\n' for n in range(200_000))
    command = [sys.executable, "-m", "rqueue.cli", "--url", server.url, "pipeline", "load"]
    command += [
        "many.json",
        "--partitions",
        "2",
        "--format",
        "json",
        "--schema",
        "n INT",
        "--task",
        "t",
        "--master",
    ]
    command += ["local[2]", "-q", queue.name, "--args-columns", "n", "--name", "kill", "--json"]
    first = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    watch = queue.consumer(jobs=1, renew=False).register()
    try:
        assert any(watch.pull() or watch.wait(10) for _ in range(18)), "the first job is there"
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        watch.close()
    there = queue.counts().ready
    assert 0 < there < 200_000, "it was killed in the middle"
    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert second.returncode == 0, second.stderr
    done = json.loads(second.stdout)
    assert queue.counts().ready == 200_000
    assert done["jobs"] + done["repeated"] == 200_000 and done["repeated"] >= there
