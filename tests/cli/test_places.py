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
        "stayed": {},
    }
    said = run("prioritize", queue.name, "j001", "never", "--priority", "9", code=1)
    assert said.stdout == "1 of 2 jobs moved\n"
    assert said.stderr == "rqueue: job 'never' stays: this queue has no such job\n"
    run("prioritize", queue.name, "j001", "j001", "--priority", "9")
    run("prioritize", queue.name, "j001", code=2)
    run("prioritize", queue.name, "j001", "--front", "--priority", "3", code=2)
    run("prioritize", queue.name, "j001", "--priority", "10", code=2)
    run("prioritize", "nowhere", "j001", "--front", code=3)
    assert [job.id for job in consumer(jobs=3).pull()] == ["j001", "j002", "j000"]


def test_prioritize_names_each_job_that_stays(
    run: Run, read: Read, queue: Queue, consumer: Make
) -> None:
    """Also where one of them waits behind another of its group: the others are moved all the
    same."""
    queue.configure(kind="groups")
    queue.send("app.t", [], None, Options(id="held"))
    consumer(jobs=1).pull()
    for id_, group in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "z")):
        queue.send("app.t", [], None, Options(id=id_, group=group))
    queue.send("app.t", [], None, Options(id="later", delay_ms=900_000))
    behind = "it waits behind others of its group, of which 'a' is the first one"
    held = "a consumer has it"
    named = ("d", "b", "held", "later", "c")
    document = read("prioritize", queue.name, *named, "--front", code=1)
    assert document["moved"] == 2
    assert document["stayed"] == {"b": behind, "held": held, "later": "it is scheduled"}
    assert [job["id"] for job in read("jobs", queue.name)["jobs"]] == ["d", "c", "a"]
    said = run("prioritize", queue.name, *named, "--priority", "7", code=1)
    assert said.stdout == "3 of 5 jobs moved\n"
    assert said.stderr == f"rqueue: job 'b' stays: {behind}\nrqueue: job 'held' stays: {held}\n"


def test_promote(run: Run, read: Read, queue: Queue) -> None:
    for id_, task in (("a", "send"), ("b", "make"), ("c", "make")):
        queue.send(task, [], None, Options(id=id_, delay_ms=900_000, labels={"tenant": 7}))
    assert read("promote", queue.name, "a") == {"queue": queue.name, "promoted": 1, "stayed": {}}
    said = run("promote", queue.name, "a", "nosuch", code=1)
    assert said.stdout == f"0 jobs of queue '{queue.name}' made ready\n"
    assert "job 'a' stays: it is ready" in said.stderr
    assert "job 'nosuch' stays: this queue has no such job" in said.stderr
    assert read("promote", queue.name, "nosuch", code=1)["stayed"].keys() == {"nosuch"}
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
    said = run("move", queue.name, "nowhere", "--all", code=3).stderr
    assert "there is no queue 'nowhere': make it before jobs go there: rqueue configure" in said
    assert read("copy", queue.name, other.name, "a") == {
        "queue": queue.name,
        "target": other.name,
        "copied": 1,
        "stayed": {},
    }
    run("copy", queue.name, other.name, "--task", "send", code=1)
    assert "2 jobs" in run("move", queue.name, other.name, "--task", "make", "-n", "2").stdout
    moved = run("move", queue.name, other.name, "a", "d", "never", code=1)
    assert "1 job of queue" in moved.stdout
    assert "job 'a' stays: the other queue knows a job of this id" in moved.stderr
    assert "job 'never' stays: this queue has no such job" in moved.stderr
    assert "job 'a' stays" in run("move", queue.name, other.name, "--all", code=1).stderr
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
        "stayed": {},
    }
    said = run("reject", queue.name, "a", code=1).stderr
    assert "job 'a' stays: it is a dead letter" in said
    assert "no need" in run("dead", "list", queue.name).stdout
    run("expire", queue.name, "b", code=2)
    assert "1 job" in run("expire", queue.name, "b", "--yes").stdout
    assert read("expire", queue.name, "--all", "--yes") == {
        "queue": queue.name,
        "expired": 1,
        "stayed": {},
    }
    run("expire", queue.name, "--all", "--yes", code=1)


def test_dead_letters_are_moved_where_somebody_says_so(run: Run, read: Read, queue: Queue) -> None:
    other = queue.at(queue.name + "-other")
    other.configure()
    for id_ in "abc":
        queue.send("app.t", [], None, Options(id=id_))
    run("reject", queue.name, "--all")
    said = run("move", queue.name, other.name, "a", code=1).stderr
    assert "job 'a' stays: it is a dead letter, which goes only with dead=True (--dead)" in said
    said = run("move", queue.name, other.name, "--dead", "--all", code=2).stderr
    assert "the dead letters that fit into queue" in said and "to be run there?" in said
    assert "2 jobs" in run("move", queue.name, other.name, "--dead", "b", "c", "--yes").stdout
    assert read("copy", queue.name, other.name, "--dead", "--all", "-y")["copied"] == 1
    assert (queue.counts().dead, other.counts().ready, other.counts().dead) == (1, 3, 0)


def test_what_nobody_tried_has_no_attempts(run: Run, read: Read, queue: Queue) -> None:
    for id_ in "abc":
        queue.send("app.t", [], None, Options(id=id_))
    with queue.consumer() as consumer:
        consumer.reject(consumer.pull()[0], "no")
    run("reject", queue.name, "b")
    run("expire", queue.name, "c", "--yes")
    rows = [line.split() for line in run("history", queue.name, "--limit", "5").stdout.splitlines()]
    found = {row[-1 - row[::-1].index(id_)]: row for row in rows for id_ in "abc" if id_ in row}
    assert found["a"][found["a"].index("a") - 1] == "1"
    assert found["b"][found["b"].index("b") - 1] == "0"
    assert found["c"][found["c"].index("c") - 1] == "0"
    said = run("show", "b").stdout
    assert "dead: rejected by hand" in said and "error of attempt" not in said
    assert "error of attempt 1" in run("show", "a").stdout


def test_a_job_that_all_refuse_says_so(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    queue.send("app.t", [], None, Options(id="r1"))
    one, two = consumer(), consumer()
    one.refuse(one.pull()[0])
    assert read("show", "r1")["reason"] is None
    two.refuse(two.pull()[0])
    said = "all registered consumers have refused it, and it waits for another one"
    assert read("show", "r1")["reason"] == said
    assert said in run("show", "r1").stdout
    doctor = " ".join(run("doctor", queue.name).stdout.split())
    assert "1 job ready, and all registered consumers have refused them" in doctor
    consumer()
    assert read("show", "r1")["reason"] is None


def test_a_job_that_nobody_selects_says_so(run: Run, read: Read, queue: Queue) -> None:
    queue.configure(kind="selectors")
    queue.send("app.t", [], None, Options(id="j", labels={"gpu": True}))
    with queue.consumer(select="not gpu", renew=False):
        assert read("show", "j")["reason"] == "no registered consumer selects its labels (gpu=true)"


def test_dead_letters_that_stay_are_named(run: Run, read: Read, queue: Queue) -> None:
    for id_ in ("a", "b"):
        queue.send("app.t", [1], None, Options(id=id_, unique=True))
        run("reject", queue.name, id_)
    queue.send("app.t", [1], None, Options(id="now", unique=True))
    done = run("dead", "requeue", queue.name, "--yes")
    assert "2 dead letters stayed (a, b)" in done.stderr
    assert "1 dead letter stayed (a)" in run("dead", "requeue", queue.name, "a", "--yes").stderr
    assert read("dead", "requeue", queue.name, "--yes")["stayed"] == ["a", "b"]
