"""Django's own tests of task backends, on rqueue's: `make test-django` runs them in an environment
with Django 6, from the source distribution of that Django.

    python -m tests.contrib.django_suite FOLDER     # where django-6.x.y/tests is

What these tests say of the backends that Django brings along (`DummyBackend`, `ImmediateBackend`)
is asked of `RqueueBackend` by changing the setting TASKS. Where they enqueue and look at the end at
once, a stand-in for a worker runs the job in this process, so that its log lines are seen.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
import unittest
import warnings
from inspect import iscoroutinefunction
from typing import Any

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.envelope import unpack
from rqueue.model.job import Delivery
from rqueue.tasks.context import JobContext, current
from rqueue.tasks.registry import registry
from rqueue.tasks.retry import error_name
from rqueue.testing import FrozenTime

OURS = __name__ if __name__ != "__main__" else "tests.contrib.django_suite"

NOT_ASKED = {
    "test_using_correct_backend": "names the class of Django's backend",
    "test_get_backend": "names the class of Django's backend",
    "test_throws_keyboard_interrupt": "of who runs a task in the caller's process",
    "test_cannot_get_result": "we can",
    "test_cannot_refresh_result": "we can",
    "test_cannot_pass_run_after": "we can",
    "test_validate_on_enqueue": "sets Django's backend by itself",
    "test_validate_on_aenqueue": "sets Django's backend by itself",
    "test_refresh_result": "changes DummyBackend's list of results",
    "test_refresh_result_async": "changes DummyBackend's list of results",
    "test_doesnt_wait_until_transaction_commit_by_default": "we do, unless on_commit is False",
}
ASKED_OF_TASKS = {"test_refresh_result"}
"""In `TaskTestCase` this is another test, without such a list."""


def configure(url: str) -> None:
    from django.conf import settings

    memory = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    settings.configure(
        SECRET_KEY="tests",
        USE_TZ=True,
        DATABASES={"default": memory},
        INSTALLED_APPS=["rqueue.contrib.django"],
        RQUEUE={"url": url},
    )
    import django

    django.setup()


def backend_classes() -> None:
    """Backends for the tests: with the list of results that DummyBackend has, and with a worker."""
    from rqueue.contrib.django.backend import RqueueBackend

    class Recorded(RqueueBackend):
        def __init__(self, alias: str, params: Any) -> None:
            super().__init__(alias, params)
            self.results: list[Any] = []

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            self.results.append(result)
            return result

        def clear(self) -> None:
            self.results.clear()
            self.queue("default").redis.flushall()

    class Worked(RqueueBackend):
        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            from rqueue.contrib.django.task_runs import register

            register(task)
            result = super().enqueue(task, args, kwargs)
            run_next(self.queue(task.queue_name))
            result.refresh()
            return result

    globals().update(Recorded=Recorded, Worked=Worked)


def run_next(queue: Queue) -> None:
    """Run the next job, as a worker does."""
    with queue.consumer(renew=False, name="django-suite") as consumer:
        (job,) = consumer.pull()
        _run(queue, consumer, job)


def _run(queue: Queue, consumer: Any, job: Delivery) -> None:
    name, args, kwargs, opts = unpack(job.body)
    task = registry.get(name)
    now = round(FrozenTime(queue).now.timestamp() * 1000)
    token = current.set(JobContext(job, name, queue.name, opts, now, "django-suite"))
    try:
        value: Any = task.function(*args, **kwargs)
        if iscoroutinefunction(task.function):
            value = asyncio.run(value)
    except BaseException as error:
        cause = {
            "kind": "exception",
            "type": error_name(type(error)),
            "message": str(error),
            "traceback": "".join(traceback.format_exception(error)),
            "at": now,
            "started": now,
            "attempt": 1,
            "worker": "django-suite",
        }
        consumer.settle(reject=[(job, cause)])
    else:
        consumer.ack(job, value)
    finally:
        current.reset(token)


def suite() -> unittest.TestSuite:
    """Django's test cases, with rqueue's backend in their settings."""
    from django.test import override_settings

    from tasks import test_dummy_backend, test_immediate_backend, test_tasks

    ours: dict[str, Any] = {"BACKEND": f"{OURS}.Recorded", "QUEUES": []}
    theirs = dict(test_tasks.TaskTestCase._overridden_settings["TASKS"])
    cases = {
        test_tasks.TaskTestCase: {**theirs, "default": {**ours, "QUEUES": ["default", "queue_1"]}},
        test_dummy_backend.DummyBackendTestCase: {"default": ours},
        test_immediate_backend.ImmediateBackendTestCase: {
            "default": {"BACKEND": f"{OURS}.Worked", "QUEUES": []}
        },
    }
    found = unittest.TestSuite()
    for case, settings in cases.items():
        made = type(f"Rqueue{case.__name__}", (case,), {})
        named = unittest.defaultTestLoader.getTestCaseNames(made)
        kept = ASKED_OF_TASKS if case is test_tasks.TaskTestCase else set()
        decorated: Any = override_settings(TASKS=settings)(made)
        found.addTests(decorated(name) for name in named if name in kept or name not in NOT_ASKED)
    return found


def main(folder: str) -> int:
    """Run them; 0 where all pass."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=ResourceWarning)
    sys.path.insert(0, folder)
    with EmbeddedRedis() as server:
        configure(server.url)
        backend_classes()
        sys.modules.setdefault(OURS, sys.modules[__name__])
        result = unittest.TextTestRunner(verbosity=2).run(suite())
    return 0 if result.wasSuccessful() and result.testsRun > 50 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
