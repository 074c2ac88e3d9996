"""What is done with jobs that wait: prioritize, promote, move, copy, reject, expire."""

from collections.abc import Callable
from typing import Any

from click.testing import Result

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.tasks.options import Options

Run = Callable[..., Result]
Read = Callable[..., Any]
Make = Callable[..., Consumer]


def test_prioritize(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    for number in range(3):
        queue.send("app.t", [number], None, Options(id=f"j00{number}"))
    assert read("prioritize", queue.name, "j002", "--front") == {
        "queue": queue.name,
        "moved": 1,
        "left": 0,
    }
    assert (
        "1 of 2 jobs moved"
        in run("prioritize", queue.name, "j001", "never", "--priority", "9", code=1).stdout
    )
    run("prioritize", queue.name, "j001", code=2)
    run("prioritize", queue.name, "j001", "--front", "--priority", "3", code=2)
    run("prioritize", queue.name, "j001", "--priority", "10", code=2)
    run("prioritize", "nowhere", "j001", "--front", code=3)
    assert [job.id for job in consumer(jobs=3).pull()] == ["j001", "j002", "j000"]


def test_promote(run: Run, read: Read, queue: Queue) -> None:
    for id_, task in (("a", "send"), ("b", "make"), ("c", "make")):
        queue.send(task, [], None, Options(id=id_, delay_ms=900_000, labels={"tenant": 7}))
    assert read("promote", queue.name, "a") == {"queue": queue.name, "promoted": 1}
    run("promote", queue.name, "a", code=1)
    run("promote", queue.name, code=2)
    run("promote", queue.name, "a", "--all", code=2)
    run("promote", queue.name, "--task", "make", "--label", "tenant=8", code=1)
    assert "2 jobs" in run("promote", queue.name, "--label", "tenant=7").stdout
    run("promote", queue.name, "--all", code=1)


def test_move_and_copy(run: Run, read: Read, queue: Queue) -> None:
    for id_, task in (("a", "send"), ("b", "make"), ("c", "make"), ("d", "make")):
        queue.send(task, [], None, Options(id=id_, labels={"tenant": 7}))
    other = queue.at(queue.name + "-other")
    other.configure(priorities=10)
    run("move", queue.name, "nowhere", "--all", code=2)
    assert read("copy", queue.name, other.name, "a") == {
        "queue": queue.name,
        "target": other.name,
        "copied": 1,
        "stayed": {},
    }
    run("copy", queue.name, other.name, "--task", "send", code=1)
    assert "2 jobs" in run("move", queue.name, other.name, "--task", "make", "-n", "2").stdout
    run("move", queue.name, other.name, "d", "never", code=1)
    run("move", queue.name, other.name, "--label", "tenant=8", code=1)
    run("move", queue.name, other.name, code=2)
    run("move", queue.name, other.name, "a", "--all", code=2)
    assert "moved to queue" in run("jobs", queue.name, "--state", "moved").stdout
    assert "ready" in run("show", "b").stdout
    run("result", "b", "-q", queue.name, code=1)
    said = run("history", queue.name, "--outcome", "moved").stdout
    rows = [line.split()[-5:] for line in said.splitlines()[1:]]
    assert [(row[0], " ".join(row[1:4])) for row in rows] == [
        (id_, f"to queue {other.name}") for id_ in "bcd"
    ]


def test_reject_and_expire(run: Run, read: Read, queue: Queue) -> None:
    for id_ in "abc":
        queue.send("app.t", [], None, Options(id=id_))
    assert read("reject", queue.name, "a", "--reason", "no need") == {
        "queue": queue.name,
        "rejected": 1,
    }
    assert "no need" in run("dead", "list", queue.name).stdout
    run("expire", queue.name, "b", code=2)
    assert "1 job" in run("expire", queue.name, "b", "--yes").stdout
    assert read("expire", queue.name, "--all", "--yes") == {"queue": queue.name, "expired": 1}
    run("expire", queue.name, "--all", "--yes", code=1)
