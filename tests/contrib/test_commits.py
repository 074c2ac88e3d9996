"""What is enqueued inside a transaction of Django waits for its commit."""

import asyncio
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rqueue.errors import ConfigError, LifecycleError, NotEncodable, RQueueError
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue.tasks.task import Task
from rqueue.tasks.unique import Unique
from rqueue.tasks.workflow import Workflow, chain, chord


@pytest.fixture
def record(django: Any) -> Iterator[Task[..., Any]]:
    def record(what: object) -> None: ...

    yield task(queue=django.queue.name, registry=Registry())(record)


@pytest.fixture
def waiting(django: Any) -> Callable[[], list[Any]]:
    """The first argument of each job that is stored, in order."""

    def waiting() -> list[Any]:
        from rqueue.inspector import Inspector

        with Inspector(redis=django.queue.redis) as inspector:
            if django.queue.name not in inspector.queue_names():
                return []
            return [job.args[0] for job in inspector.all_jobs(django.queue.name)]

    return waiting


class Refused(Exception):
    pass


def test_a_job_waits_for_the_commit(django: Any, record: Any, waiting: Any) -> None:
    with django.transaction.atomic():
        job = record.enqueue(1)
        assert (job.created, job.state(), waiting()) == (None, "unknown", [])
        with pytest.raises(LifecycleError, match="not sent yet"):
            job.result(0)
        with pytest.raises(LifecycleError, match="not sent yet"):
            job.states()
    assert (job.created, job.state(), waiting()) == (True, "ready", [1])
    assert record.enqueue(2).created and waiting() == [1, 2], "without a transaction, at once"


def test_a_rolled_back_transaction_leaves_no_job(django: Any, record: Any, waiting: Any) -> None:
    with pytest.raises(Refused), django.transaction.atomic():
        job = record.enqueue(1)
        raise Refused
    assert (job.created, waiting()) == (None, [])
    with pytest.raises(LifecycleError, match=f"job {job.id} was never sent: its transaction was"):
        job.result(1)
    record.enqueue(2)
    assert waiting() == [2]


def test_what_a_savepoint_took_along_was_never_sent(django: Any, record: Any) -> None:
    atomic = django.transaction.atomic
    with atomic():
        kept = record.enqueue(1)
        with atomic():
            job, flow = record.enqueue(2), chain(record.s(3), record.si(4)).enqueue()
            django.transaction.set_rollback(True)
        for one in (job, flow):
            with pytest.raises(LifecycleError, match=f"{one.id} was never sent"):
                one.result(1)
        with pytest.raises(LifecycleError, match=f"{kept.id} is not sent yet"):
            kept.result(1)


def test_a_rolled_back_job_of_asyncio_was_never_sent(django: Any, record: Any) -> None:
    from asgiref.sync import async_to_sync

    async def enqueue() -> Any:
        return await record.aenqueue(1)

    async def ask(job: Any) -> None:
        with pytest.raises(LifecycleError, match="was never sent: its transaction was"):
            await job.result(1)

    with django.transaction.atomic():
        job = async_to_sync(enqueue)()
        django.transaction.set_rollback(True)
    asyncio.run(ask(job))


def test_a_callback_before_its_own_is_told_that_a_job_waits(django: Any, record: Any) -> None:
    said: list[str] = []

    def ask() -> None:
        with pytest.raises(LifecycleError) as caught:
            jobs[0].result(1)
        said.append(str(caught.value))

    with django.transaction.atomic():
        django.transaction.on_commit(ask)
        jobs = [record.enqueue(1)]
    assert jobs[0].created and "is not sent yet" in said[0]


def test_a_savepoint_takes_its_jobs_along(django: Any, record: Any, waiting: Any) -> None:
    atomic = django.transaction.atomic
    with atomic():
        record.enqueue("outer 1")
        with pytest.raises(Refused), atomic():
            record.enqueue("rolled back")
            raise Refused
        record.enqueue("outer 2")
        with atomic():
            record.enqueue("inner")
            with pytest.raises(Refused), atomic():
                record.enqueue("rolled back")
                with atomic():
                    record.enqueue("rolled back with it")
                raise Refused
        record.enqueue("outer 3")
        with atomic(savepoint=False):
            record.enqueue("of the same savepoint")
    assert waiting() == ["outer 1", "outer 2", "inner", "outer 3", "of the same savepoint"]


def test_many_of_a_transaction_are_one_step(django: Any, record: Any, waiting: Any) -> None:
    with django.transaction.atomic():
        jobs = [record.enqueue(i) for i in range(300)]
        assert len(django.connection.run_on_commit) == 1
        before = django.queue.redis.info("commandstats")
    after = django.queue.redis.info("commandstats")
    calls = sum(after[name]["calls"] - before.get(name, {"calls": 0})["calls"]
                for name in after if name.startswith("cmdstat_evalsha"))  # fmt: skip
    assert calls <= 3, "250 in a step, and no script is known at first"
    assert waiting() == list(range(300))
    assert len({job.id for job in jobs}) == 300 and all(job.created for job in jobs)


def test_it_stands_in_its_place_among_other_callbacks(
    django: Any, record: Any, waiting: Any
) -> None:
    seen: list[list[Any]] = []
    with django.transaction.atomic():
        record.enqueue(1)
        django.transaction.on_commit(lambda: seen.append(waiting()))
        record.enqueue(2)
    assert (seen, waiting()) == ([[1]], [1, 2])


def test_whose_commit_is_said(django: Any, record: Any, waiting: Any) -> None:
    atomic = django.transaction.atomic
    with atomic():
        record.options(on_commit=False).enqueue("at once")
        assert waiting() == ["at once"]
        with django.override(on_commit=False):
            record.enqueue("by the setting")
            assert waiting() == ["at once", "by the setting"]
            record.options(on_commit=True).enqueue("waits")
    with atomic(using="other"):
        record.enqueue("another database's")
        record.options(on_commit="other").enqueue("other waits")
        assert waiting()[2:] == ["waits", "another database's"]
    with django.override(on_commit="other"), atomic(), atomic(using="other"):
        record.enqueue("last")
        assert waiting()[-1] == "other waits"
    assert waiting()[-1] == "last"
    with pytest.raises(ConfigError, match="on_commit"):
        record.options(on_commit=3)


def test_a_task_may_say_so_itself(django: Any, waiting: Any) -> None:
    def eager(what: str) -> None: ...

    made: Any = task(queue=django.queue.name, registry=Registry(), on_commit=False)(eager)
    with django.transaction.atomic():
        made.enqueue("now")
        assert waiting() == ["now"]


def test_wrong_arguments_are_refused_at_the_call(django: Any, record: Any, waiting: Any) -> None:
    with django.transaction.atomic():
        with pytest.raises(NotEncodable):
            record.enqueue(b"x")
        with pytest.raises(ConfigError, match="on_commit=False"):
            record.options(immediate=True).enqueue(1)
        record.enqueue(2)
    assert waiting() == [2]


def test_what_is_cancelled_before_the_commit_is_not_sent(
    django: Any, record: Any, waiting: Any
) -> None:
    with django.transaction.atomic():
        first, second = record.enqueue(1), record.enqueue(2)
        assert first.cancel() and not first.cancel()
        with pytest.raises(LifecycleError, match="was not stored: it was cancelled before"):
            first.result(1)
    assert (waiting(), second.cancel(), waiting()) == ([2], "ended", [])


def test_a_known_id_is_one_job(django: Any, record: Any, waiting: Any) -> None:
    named = record.options(id="order-1")
    with django.transaction.atomic():
        first, second = named.enqueue(1), named.enqueue(2)
    assert (first.created, second.created, waiting()) == (True, False, [1])


def test_an_error_of_the_server_is_raised_by_the_commit(
    django: Any, record: Any, waiting: Any
) -> None:
    full = django.queue.at(f"{django.queue.name}-full")
    full.configure(max_jobs=1)
    with pytest.raises(RQueueError, match="full"), django.transaction.atomic():
        django.Group.objects.create(name="committed")
        record.options(queue=full.name).enqueue(1)
        record.options(queue=full.name).enqueue(2)
        record.enqueue("of another queue")
    assert django.Group.objects.filter(name="committed").exists()
    assert waiting() == ["of another queue"]


def test_asyncio_inside_of_a_transaction(django: Any, record: Any, waiting: Any) -> None:
    from asgiref.sync import async_to_sync

    async def place() -> Any:
        return await record.aenqueue(1)

    with django.transaction.atomic():
        job = async_to_sync(place)()
        assert (job.created, waiting()) == (None, [])
        with pytest.raises(LifecycleError, match="not sent yet"):
            asyncio.run(job.result(0))
    assert (job.created, waiting()) == (True, [1])

    async def without() -> Any:
        return (await record.aenqueue(2)).created

    assert asyncio.run(without()) and waiting() == [1, 2]


def test_in_a_test_case_each_enqueue_is_a_callback(django: Any, record: Any, waiting: Any) -> None:
    from django.test import TestCase

    class Orders(TestCase):
        def setUp(self) -> None:
            record.enqueue("not captured")

        def runTest(self) -> None:
            with self.captureOnCommitCallbacks(execute=True) as callbacks:
                record.enqueue(1)
                record.enqueue(2)
            self.assertEqual(len(callbacks), 2)

    result = unittest.TestSuite([Orders()]).run(unittest.TestResult())
    assert result.wasSuccessful(), result.errors + result.failures
    assert waiting() == [1, 2]


def test_a_unique_job_is_answered_by_the_commit(django: Any, record: Any, waiting: Any) -> None:
    record = record.options(unique=True)
    with django.transaction.atomic():
        first, again, other = record.enqueue(1), record.enqueue(1), record.enqueue(2)
    assert (again.id, again.created, again.conflict) == (first.id, False, "ready")
    assert (other.created, waiting()) == (True, [1, 2])
    refuses = record.options(unique=Unique(on_conflict="raise"))
    with django.transaction.atomic(), pytest.raises(ConfigError, match="on_commit=False"):
        refuses.enqueue(3)


@pytest.fixture
def flow(django: Any) -> Workflow[Any]:
    """Two calls, and one that gets their results, of which one may be in another queue."""
    registry = Registry()

    @task(queue=django.queue.name, registry=registry)
    def part(number: int) -> int:
        return number

    @task(queue=django.queue.name, registry=registry)
    def whole(numbers: list[int]) -> int:
        return sum(numbers)

    return chord([part.s(1), part.options(queue=f"{django.queue.name}-2").s(2)], whole.s())


@pytest.fixture
def there(django: Any) -> Callable[[], dict[str, int]]:
    """How many jobs each queue has."""

    def there() -> dict[str, int]:
        found = {}
        for end in ("", "-2"):
            counts = django.queue.at(f"{django.queue.name}{end}").counts()
            found[end] = counts.ready + counts.more.get("deferred", 0)
        return {end: count for end, count in found.items() if count}

    return there


def test_a_workflow_waits_for_the_commit(django: Any, flow: Any, record: Any, there: Any) -> None:
    with django.transaction.atomic():
        record.enqueue(1)
        handle = flow.enqueue()
        record.enqueue(2)
        assert there() == {}
        with pytest.raises(LifecycleError, match="not sent yet"):
            handle.result(0)
    assert there() == {"": 4, "-2": 1}
    assert [str(job.state()) for job in handle.jobs] == ["deferred"]
    assert handle.cancel() == 3
    with pytest.raises(Refused), django.transaction.atomic():
        flow.enqueue()
        raise Refused
    assert there() == {"": 2}
    assert flow.enqueue().jobs and there() == {"": 4, "-2": 1}, "without a transaction, at once"


def test_a_workflow_is_checked_at_the_call_and_dropped_before_the_commit(
    django: Any, flow: Any, there: Any
) -> None:
    with django.transaction.atomic():
        handle = flow.enqueue(id="w")
        assert (handle.id, handle.cancel(), handle.cancel()) == ("w", 3, 0)
        with pytest.raises(NotEncodable):
            chain(flow.callback.task.s([object()])).enqueue()
    assert there() == {}


def test_a_workflow_of_asyncio_inside_of_a_transaction(django: Any, flow: Any, there: Any) -> None:
    from asgiref.sync import async_to_sync

    async def place() -> Any:
        return await flow.aenqueue()

    with django.transaction.atomic():
        handle = async_to_sync(place)()
        assert there() == {}
        with pytest.raises(LifecycleError, match="not sent yet"):
            asyncio.run(handle.result(0))
    assert there() == {"": 2, "-2": 1}
    assert asyncio.run(place()).ids and there() == {"": 4, "-2": 2}
