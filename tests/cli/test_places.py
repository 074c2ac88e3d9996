"""What moves jobs that wait: prioritize, promote."""

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
