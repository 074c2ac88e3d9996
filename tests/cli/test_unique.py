"""What the command line says of unique jobs."""

from rqueue.client._sync.queue import Queue
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.unique import Unique
from tests.cli.looking import Read, Run

BY_NAME = Unique(key="k")


def put(queue: Queue, id: str) -> str:
    return queue.send("t", options=Options(id=id, unique=BY_NAME)).id


def test_show_claims_no_key_that_a_job_does_not_have(run: Run, read: Read, queue: Queue) -> None:
    put(queue, "first-one")
    on = ("-q", queue.name)
    assert "until its end" in run("show", "first-one", *on).stdout
    assert read("show", "first-one", *on)["unique_owner"] == "first-one"
    run("unique", queue.name, "--job", "first-one", "--clear")
    assert "is free: no job has it now" in run("show", "first-one", *on).stdout
    put(queue, "second-one")
    assert "is that of job second-one now" in run("show", "first-one", *on).stdout


def test_what_stays_is_named(run: Run, read: Read, queue: Queue) -> None:
    other = queue.at(queue.name + "-other")
    put(queue, "a")
    put(other, "b")
    said = run("move", queue.name, other.name, "a", "gone", code=1).stderr
    assert "job 'gone' stays: this queue has no such job" in said
    assert "job 'a' stays: its unique key is that of job 'b' there" in said
    assert "stays" in run("copy", queue.name, other.name, "--all", code=1).stderr


def test_schedules_of_unique_jobs(run: Run, queue: Queue) -> None:
    periodic = task(name="page.sync", registry=Registry(), unique=True)(lambda: None)
    queue.schedules.set("s", periodic, every="1h")
    first = queue.enqueue(periodic)
    assert f"{periodic.unique_key()}, until its end" in run("cron", "show", queue.name, "s").stdout
    ran = run("cron", "run-now", queue.name, "s", code=1)
    assert ran.stdout.strip() == first.id and "which is ready" in ran.stderr
