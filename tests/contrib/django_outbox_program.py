"""A project of Django with an outbox, as a program: `python -m ... DATABASE URL`; it ends well
where all holds. DATABASE: JSON, as in DATABASES."""

import json
import sys
import unittest
from io import StringIO
from typing import Any

import django
from django.conf import settings

DATABASE, URL = sys.argv[1:]
BACKPORT = ["django_tasks"] if django.VERSION < (6,) else []
settings.configure(
    INSTALLED_APPS=[*BACKPORT, "rqueue.contrib.django", "rqueue.contrib.django.outbox"],
    DATABASES={"default": json.loads(DATABASE)},
    TASKS={"default": {"BACKEND": "rqueue.contrib.django.RqueueBackend", "QUEUES": []}},
    RQUEUE={"url": URL, "namespace": "outbox-program", "outbox": True},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import TestCase  # noqa: E402

import rqueue  # noqa: E402
from rqueue import chain, chord, stream, task  # noqa: E402
from rqueue.client.default_queues import disconnect  # noqa: E402
from rqueue.contrib.django.outbox import run_once, waits  # noqa: E402
from rqueue.contrib.django.outbox.jobs import database  # noqa: E402
from rqueue.contrib.django.outbox.store import DjangoStore  # noqa: E402
from rqueue.contrib.outbox import Relay  # noqa: E402
from rqueue.errors import ConfigError, LifecycleError  # noqa: E402
from rqueue.model.job import Delivery  # noqa: E402
from rqueue.tasks.context import JobContext, current  # noqa: E402

try:
    from django.tasks import task as django_task  # type: ignore[import-not-found]
except ImportError:
    from django_tasks import task as django_task


@django_task(queue_name="orders")
def note(order: int) -> None: ...


@task(queue="orders")
def ship(order: int) -> None: ...


def command(*args: str) -> tuple[str, int]:
    """What `manage.py rqueue_outbox ...` prints, and its exit code."""
    said, sys.stdout = sys.stdout, StringIO()
    try:
        call_command("rqueue_outbox", *args)
        return sys.stdout.getvalue(), 0
    except SystemExit as end:
        return sys.stdout.getvalue(), int(end.code or 0)
    finally:
        sys.stdout = said


def waiting() -> list[int]:
    orders = rqueue.queue("orders")
    with orders.consumer(jobs=100) as consumer:
        jobs = consumer.pull()
        found = [orders.envelope(job).args[0] for job in jobs]
        for job in jobs:
            consumer.ack(job)
    return found


def refused(kind: type[Exception], call: Any) -> str:
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def enqueues() -> None:
    with transaction.atomic():
        job = ship.enqueue(1)
        assert job.created is None and job.state() == "unknown"
        refused(ConfigError, lambda: ship.options(immediate=True).enqueue(1))
        ship.options(on_commit=False).enqueue(2)
    assert waiting() == [2], "only what does not wait for the commit"
    try:
        with transaction.atomic():
            ship.enqueue(3)
            raise KeyError
    except KeyError:
        ship.enqueue(4)
    assert waiting() == [4], "without a transaction it is sent at once"
    assert command("status") == ("orders: 1 job to be sent\n", 0)
    assert waits(job.id, "orders") and not waits(job.id)
    assert command("relay", "--once") == ("1 job moved\n", 0)
    assert not waits(job.id, "orders")
    assert waiting() == [1] and command("status") == ("the outbox is empty\n", 0)


def enqueues_of_djangos_tasks() -> None:
    with transaction.atomic():
        result = note.enqueue(9)
        assert result.id and result.enqueued_at is None
    assert waiting() == []
    assert command("relay", "--once") == ("1 job moved\n", 0)
    result.refresh()
    assert result.enqueued_at is not None and waiting() == [9]


def workflows() -> None:
    last = ship.options(queue="flows")
    flow = chord([last.s(1), last.s(2)], last.si(3))
    apart = chain(ship.s(1), last.si(2))
    drawn = stream((last.s(n) for n in (7, 8)), last.si(9))
    with transaction.atomic():
        handle = flow.enqueue(id="w")
        assert apart.enqueue(id="v").queues == {"v.0": "orders"}
        assert "on_commit=False" in refused(ConfigError, drawn.enqueue)
    assert handle.ids == ["w", "w.0", "w.1"]

    class Orders(TestCase):
        def runTest(self) -> None:
            with self.captureOnCommitCallbacks() as found:
                apart.enqueue()
                with transaction.atomic():
                    apart.enqueue()
                    assert "on_commit=False" in refused(ConfigError, drawn.enqueue)
            assert len(found) == 2
            drawn.enqueue(id="s")

    result = unittest.TestSuite([Orders()]).run(unittest.TestResult())
    assert result.wasSuccessful(), result.errors + result.failures
    assert command("status") == ("flows: 4 jobs to be sent\norders: 1 job to be sent\n", 0)
    assert command("relay", "--once") == ("5 jobs moved\n", 0)
    with rqueue.queue("orders").consumer() as consumer:
        consumer.settle(ack=consumer.pull())
    rqueue.queue("orders").forward()
    flows, seen = rqueue.queue("flows"), list[int]()
    with flows.consumer(jobs=100) as consumer:
        while jobs := consumer.pull():
            seen += [flows.envelope(job).args[0] for job in jobs]
            consumer.settle(ack=jobs)
    assert sorted(seen) == [1, 2, 2, 3, 7, 8, 9]
    assert seen.index(9) > seen.index(8) and seen[-1] in (3, 9)


def refusals() -> None:
    rqueue.queue("orders").configure(kind="last_value")
    with transaction.atomic():
        ship.options(key="a").enqueue(5)
        ship.options(group="g").enqueue(6)
        ship.options(key="b").enqueue(7)
    assert command("relay", "--once") == ("2 jobs moved\n", 0)
    said, code = command("status")
    assert code == 1 and "is refused: " in said and waiting() == [5, 7]
    assert command("retry", "nobody") == ("0 jobs to be sent again\n", 1)
    assert command("retry") == ("1 job to be sent again\n", 0)
    assert command("relay", "--once") == ("0 jobs moved\n", 0)
    assert command("retry", "--drop") == ("1 job dropped\n", 0)


def effects() -> None:
    called = []

    def charge(amount: int) -> list[int]:
        called.append(amount)
        return [amount]

    def fail() -> None:
        raise KeyError

    assert "inside of a task" in refused(LifecycleError, lambda: run_once(charge, 1))
    token = current.set(JobContext(Delivery("a", b"0,0;[]"), "pay", "orders"))
    assert "atomic" in refused(LifecycleError, lambda: run_once(charge, 1))
    with transaction.atomic():
        refused(KeyError, lambda: run_once(fail))
    for _ in range(2):
        with transaction.atomic():
            assert run_once(charge, 5) == [5]
    current.reset(token)
    assert called == [5]
    relay = Relay(DjangoStore(database()), rqueue.queue)
    assert relay.clean() == 0
    relay.keep = -1
    assert relay.clean() == 1


def bells() -> None:
    store = DjangoStore(database())
    with store.bell() as bell:
        assert bell.leads()
        assert bell.listens == (connection.vendor == "postgresql")
        if bell.listens:
            with transaction.atomic():
                ship.options(key="c").enqueue(8)
            assert bell.wait(60)


call_command("migrate", verbosity=0)
call_command("makemigrations", "--check", verbosity=0)
call_command("check")
enqueues()
enqueues_of_djangos_tasks()
workflows()
refusals()
effects()
bells()
connection.close()
disconnect()
