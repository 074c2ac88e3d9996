"""The backend of Django's tasks: what is enqueued, what results tell, what a real pool makes of
them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tasks(django: Any) -> Any:
    from tests.contrib.django_app import tasks

    return tasks


def on(task: Any, django: Any, **more: Any) -> Any:
    return task.using(queue_name=django.queue.name, **more)


@contextmanager
def backends(**options: Any) -> Iterator[Any]:
    from django.test.utils import override_settings

    path = "rqueue.contrib.django.RqueueBackend"
    with override_settings(TASKS={"default": {"BACKEND": path, "QUEUES": [], **options}}):
        from tests.contrib.django_app.tasks import multiply

        yield multiply.get_backend()


def test_a_task_is_a_job_named_by_its_function(django: Any, tasks: Any) -> None:
    from rqueue.inspector import Inspector

    soon = datetime.now().astimezone() + timedelta(hours=1)
    result = on(tasks.multiply, django, priority=100).enqueue(3, b=4)
    on(tasks.multiply, django, priority=-1, run_after=soon).enqueue(5)
    on(tasks.multiply, django, run_after=soon - timedelta(days=1)).enqueue(6)
    with Inspector(redis=django.queue.redis) as inspector:
        first, last = inspector.jobs(django.queue.name).jobs
        (later,) = inspector.jobs(django.queue.name, "scheduled").jobs
    assert (first.task, first.args, first.kwargs, first.level) == (
        "tests.contrib.django_app.tasks.multiply", [3], {"b": 4}, 9,
    )  # fmt: skip
    assert (later.level, later.due_ms, last.args) == (3, -(-soon.timestamp() * 1000 // 1), [6])
    assert result.id == f"{django.queue.name}:{first.id}"
    assert result.enqueued_at.timestamp() * 1000 == first.enqueued_ms
    assert (result.status, result.args, result.attempts) == ("READY", [3], 0)


def test_a_result_that_is_looked_up_is_the_same(django: Any, tasks: Any) -> None:
    import dataclasses

    soon = datetime.now().astimezone() + timedelta(hours=1)
    for one in ({}, {"priority": 37}, {"run_after": soon}):
        task = on(tasks.multiply, django, **one)
        result = task.enqueue(3)
        assert tasks.multiply.get_result(result.id) == result
        before = dataclasses.asdict(result)
        result.refresh()
        assert dataclasses.asdict(result) == before


def test_what_is_no_result_does_not_exist(django: Any, tasks: Any) -> None:
    from rqueue.contrib.django.task_classes import TaskResultDoesNotExist

    backend = tasks.multiply.get_backend()
    foreign = django.queue.send("t")
    with django.queue.consumer(renew=False) as consumer:
        consumer.ack(consumer.pull()[0], {"a": 1})
    for id in ("", "123", ":", "a:", "nobody:1", f"{django.queue.name}:{foreign.id}", "x\n:1"):
        with pytest.raises(TaskResultDoesNotExist):
            backend.get_result(id)
    with backends(QUEUES=["mail"]) as narrow, pytest.raises(TaskResultDoesNotExist):
        narrow.get_result(on_other(django, tasks))


def on_other(django: Any, tasks: Any) -> str:
    return f"{django.queue.name}:{django.queue.send('t').id}"


def test_a_job_that_was_cancelled_has_failed(django: Any, tasks: Any) -> None:
    result = on(tasks.multiply, django).enqueue(1)
    django.queue.cancel(result.id.rpartition(":")[2])
    result.refresh()
    assert (result.status, result.is_finished) == ("FAILED", True)
    assert result.errors[0].exception_class.__name__ == "JobCancelled"
    assert result.finished_at >= result.task.get_backend().get_result(result.id).finished_at


def test_a_job_that_waits_for_another_has_not_failed(django: Any, tasks: Any) -> None:
    from rqueue.tasks.options import Options

    first = django.queue.send("t")
    path = on(tasks.multiply, django).module_path
    waits = django.queue.send(path, [3], options=Options(after=[first]))
    result = on(tasks.multiply, django).get_result(f"{django.queue.name}:{waits.id}")
    assert (waits.state(), result.status, result.is_finished) == ("deferred", "READY", False)


def test_the_commit_is_waited_for(django: Any, tasks: Any) -> None:
    from rqueue.contrib.django.task_classes import task_enqueued

    seen: list[Any] = []

    def enqueued(task_result: Any, **_: Any) -> None:
        seen.append(task_result)

    task_enqueued.connect(enqueued)
    try:
        with django.transaction.atomic():
            held = on(tasks.multiply, django).enqueue(1)
            assert held.id and held.enqueued_at is None and not seen
            with backends(OPTIONS={"on_commit": False}):
                assert on(tasks.multiply, django).enqueue(2).enqueued_at is not None
            assert [result.args for result in seen] == [[2]]
        assert held.enqueued_at is not None and seen[1] is held
    finally:
        task_enqueued.disconnect(enqueued)


def test_a_receiver_that_raises_keeps_no_job_back(django: Any, tasks: Any) -> None:
    from rqueue.contrib.django.task_classes import task_enqueued

    def refuse(task_result: Any, **_: Any) -> None:
        raise LookupError(task_result.args)

    task_enqueued.connect(refuse)
    try:
        with pytest.raises(LookupError), django.transaction.atomic():
            for number in range(300):
                on(tasks.multiply, django).enqueue(number)
    finally:
        task_enqueued.disconnect(refuse)
    assert django.queue.counts().ready == 300


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retires": {}}, "did you mean 'retry'"),
        ({"retry": {"tries": 3}}, "no field 'tries'"),
        ({"retry": 3}, "RetryPolicy"),
        ({"keep": "a day"}, "seconds"),
        ({"on_commit": 3}, "on_commit"),
    ],
)
def test_wrong_options_are_said_by_the_check(
    django: Any, tasks: Any, options: Any, said: str
) -> None:
    from rqueue.errors import ConfigError

    with backends(OPTIONS=options) as backend:
        (problem,) = backend.check()
        assert problem.id == "rqueue.E003" and said in problem.msg
        with pytest.raises(ConfigError):
            on(tasks.multiply, django).enqueue(1)


def test_priorities_are_levels() -> None:
    from rqueue.contrib.django.backend import level_of

    steps = [-100, -76, -75, -51, -50, -26, -25, -1, 0, 1, 20, 21, 40, 61, 80, 81, 100]
    assert [level_of(step) for step in steps] == [
        0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 8, 8, 9, 9,
    ]  # fmt: skip


def test_what_a_pool_makes_of_them(django: Any, tasks: Any, tmp_path: Path) -> None:
    queue: Queue = django.queue
    done = {
        name: on(getattr(tasks, name), django, priority=7).enqueue(*args)
        for name, args in (
            ("multiply", [3]),
            ("amultiply", [4]),
            ("describe", []),
            ("second_time", []),
        )
    }
    failed = {
        name: on(getattr(tasks, name), django).enqueue() for name in ("fail", "strange", "never")
    }
    log = tmp_path / "log"
    with log.open("wb") as output:
        pool = subprocess.Popen(
            [sys.executable, "-m", "rqueue.cli", "--url", str(queue.settings.url), "worker",
             "rqueue.contrib.django.worker", queue.name, "--processes", "1"],
            cwd=ROOT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.contrib.django_settings"},
            stdout=output,
            stderr=output,
        )  # fmt: skip
    try:
        for result in [*done.values(), *failed.values()]:
            try:
                queue.job(result.id.rpartition(":")[2]).result(PATIENCE)
            except Exception as error:
                assert type(error).__name__ == "JobFailed", (error, log.read_text())
            result.refresh()
    finally:
        pool.terminate()
        code = pool.wait(PATIENCE)
    assert code == 0, log.read_text()
    for result in done.values():
        assert result.status == "SUCCESSFUL", log.read_text()
        assert result.enqueued_at <= result.started_at <= result.last_attempted_at
        assert result.last_attempted_at <= result.finished_at
        again = result.task.get_result(result.id)
        assert again == result
    assert done["multiply"].return_value == 6 and done["amultiply"].return_value == 8
    assert done["describe"].return_value == [done["describe"].id, 1, "RUNNING", 7, 0]
    assert (done["second_time"].return_value, done["second_time"].attempts) == (2, 2)
    assert [error.exception_class for error in done["second_time"].errors] == [LookupError]
    for result in failed.values():
        assert result.status == "FAILED"
        assert result.enqueued_at <= result.started_at <= result.last_attempted_at
        assert result.last_attempted_at <= result.finished_at
        assert result.task.get_result(result.id) == result
    assert (failed["fail"].attempts, failed["never"].attempts) == (1, 3)
    (error,) = failed["fail"].errors
    assert error.exception_class is LookupError
    assert error.traceback.endswith("LookupError: nothing there\n")
    assert failed["strange"].errors[0].exception_class is TypeError
    said = [line.split()[1:] for line in log.read_text().splitlines() if line[:7] == "signal "]
    assert said.count(["started", "never", "RUNNING"]) == 3
    assert said.count(["finished", "never", "FAILED"]) == 1
    assert said.count(["started", "second_time", "RUNNING"]) == 2
    ends = sorted(line[1:] for line in said if line[0] == "finished")
    assert ends == sorted(
        [[name, "SUCCESSFUL"] for name in done] + [[name, "FAILED"] for name in failed]
    )
