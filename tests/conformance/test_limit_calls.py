"""Limits as tasks and calls name them, as people change them, and beside other policies."""

from typing import Any

import pytest

from rqueue.errors import ConfigError, InvalidName
from rqueue.model.job_limit import JobLimit
from rqueue.protocol.commands.clock import stop_clock
from rqueue.tasks.decorator import task
from rqueue.tasks.limits import Concurrency
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.unique import Unique
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place, ids, one_kind

registry = Registry()
ONE = JobLimit("crm", 1)


@task(name="push", registry=registry, limit=[Concurrency(2), Concurrency(1, key="account.id")])
def push(account: dict[str, Any], text: str = "") -> None: ...


def named(**options: Any) -> Any:
    return push.options(**options).request(push.options(**options).defaults, ({"id": 7},), {})


def test_a_call_names_the_limits_of_its_task_by_its_arguments() -> None:
    assert named().options.limit == (JobLimit("push", 2), JobLimit("push", 1, "7"))
    assert named(limit=Concurrency(3, name="db")).options.limit == (JobLimit("db", 3),)
    assert named(limit=[]).options.limit == ()
    by_function = Concurrency(1, key=lambda call: call.text or "none")
    assert named(limit=by_function).options.limit == (JobLimit("push", 1, "none"),)
    long = Concurrency(1, key=lambda call: "x" * 1000)
    assert len(named(limit=long).options.limit[0].key) == 32


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (5, "5 is no Concurrency or Rate, nor a list of such; seconds are `time_limit`"),
        ([5], "5 is no Concurrency"),
        (Concurrency(1, key="nobody"), "task 'push' has no argument 'nobody'"),
        ([Concurrency(1, name=str(number)) for number in range(9)], "at most 8 limits"),
    ],
)
def test_what_is_no_limit_is_refused(limit: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("[", r"\[")):
        named(limit=limit)


def test_a_limit_that_allows_nothing_or_has_no_name_is_none() -> None:
    for most in (0, -1, 2.5, True):
        with pytest.raises(ConfigError):
            Concurrency(most)  # type: ignore[arg-type]
    with pytest.raises(InvalidName):
        Concurrency(1, name="")
    with pytest.raises(ConfigError, match="twice"):
        named(limit=[Concurrency(1), Concurrency(2)])


@every_place
def test_tasks_by_name_and_calls_name_limits(q: QueueFixture) -> None:
    q.queue.enqueue(push, {"id": 1})
    q.queue.send("push", [{"id": 2}], None, Options(limit=JobLimit("push", 2)))
    q.queue.send("push", [{"id": 3}], None, Options(limit=Concurrency(2)))
    q.queue.enqueue(push, {"id": 1})
    assert q.queue.counts().ready == 2
    (all_, one) = q.queue.limits.list()
    assert (all_.name, all_.key, all_.most, all_.out, all_.waiting) == ("push", "", None, 2, 2)
    assert (one.key, one.out, one.waiting) == ("1", 1, 0)


@one_kind
def test_a_limit_changes_while_jobs_wait(q: QueueFixture) -> None:
    q.put(*"abcdef", limit=JobLimit("crm", 2, "k"))
    c = q.join()
    assert ids(c.pull()) == ["a", "b"]
    assert not q.queue.limits.set("crm", 4, key="*")
    assert ids(c.pull()) == ["c", "d"]
    assert q.queue.limits.set("crm", 1, key="*")
    assert ids(c.settle(ack=["a", "b", "c"], pull=True)) == []
    assert ids(c.settle(ack=["d"], pull=True)) == ["e"]
    q.queue.limits.set("crm", 2, key="k")
    assert ids(c.pull()) == ["f"]
    assert q.queue.limits.reset("crm", key="*") and q.queue.limits.reset("crm", key="k")
    assert not q.queue.limits.reset("crm", key="*")
    c.settle(ack=["e", "f"])
    assert q.queue.limits.list() == []


@one_kind
def test_the_death_of_a_consumer_gives_its_permits_back(q: QueueFixture) -> None:
    q.put("a", "b", limit=ONE)
    first, second = q.join(), q.join()
    assert ids(first.pull()) == ["a"]
    assert ids(second.pull()) == []
    move_time(q.queue, 40_000)
    assert q.renew(second) == []
    assert ids(second.pull()) == ["a"]
    assert ids(second.settle(ack=["a"], pull=True)) == ["b"]


@one_kind
def test_jobs_with_limits_expire_and_are_unique(q: QueueFixture) -> None:
    q.put("a", limit=ONE)
    q.put("b", limit=ONE, ttl=1)
    q.put("c", limit=ONE, unique=Unique(key="k"))
    assert q.put("d", limit=ONE, unique=Unique(key="k")).id == "c"
    c = q.join()
    assert ids(c.pull()) == ["a"]
    move_time(q.queue, 2000)
    assert ids(c.settle(ack=["a"], pull=True)) == ["c"]
    assert q.queue.job("b").state() == "expired"


@one_kind
def test_a_job_is_replaced_by_one_of_the_same_limits(q: QueueFixture) -> None:
    """What it waits for stays as it is, and must be what the newer arguments ask for."""
    first = Unique(key="k", on_conflict="replace")

    def replaced(most: int, key: str, **more: Any) -> str:
        options = Options(unique=first, limit=JobLimit("crm", most, key), **more)
        return q.queue.send("t", [most], options=options).id

    q.put("before", limit=JobLimit("crm", 1, "a"))
    assert replaced(1, "a", id="one") == "one"
    assert replaced(2, "a") == "one"
    with pytest.raises(ConfigError, match="labels and limits must be those of the job"):
        replaced(1, "b")
    with pytest.raises(ConfigError, match="labels and limits must be those of the job"):
        q.queue.send("t", [0], options=Options(unique=first))
    c = q.join()
    assert ids(c.pull()) == ["before"]
    (job,) = c.settle(ack=["before"], pull=True)
    assert (job.id, q.queue.envelope(job).args) == ("one", [2])


@every_place
def test_a_number_without_a_key_is_that_of_the_limit_without_one(q: QueueFixture) -> None:
    limits = (JobLimit("export", 3), JobLimit("export", 1, "acme"))
    q.put(*"abcdef", limit=limits)
    q.queue.limits.set("export", 5)
    assert q.queue.counts().ready == 1, "one of a tenant"
    q.queue.limits.set("export", 2, key="*")
    assert q.queue.counts().ready == 2
    q.queue.limits.set("export", 4, key="acme")
    q.queue.limits.set("export", 1, key="*")
    assert q.queue.counts().ready == 4, "what is set for a key goes before"
    assert [(one.key, one.most) for one in q.queue.limits.list()] == [
        *[("", 5), ("*", 1), ("acme", 4)]
    ]


@every_place
@pytest.mark.parametrize("key", ["", "acme"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_the_newest_number_holds_for_all_that_wait(
    q: QueueFixture, key: str, before: int, after: int
) -> None:
    """A number that is changed in the code holds from the first job that says it."""
    q.put(*"abcde", limit=JobLimit("db", before, key))
    consumer = q.own(100)
    taken = ids(consumer.pull())
    assert taken == [*"abcde"][:before]
    q.put("new", limit=JobLimit("db", after, key))
    running = list(taken)
    while running:
        consumer.ack(running.pop(0))
        came = ids(consumer.pull())
        taken, running = [*taken, *came], [*running, *came]
        assert len(running) <= after or not came
    assert taken == [*"abcde", "new"], "nobody is passed"


@every_place
def test_so_does_the_newest_number_of_a_rate(q: QueueFixture) -> None:
    q.put("a", "b", "c", limit=JobLimit("api", 1, "", 3_600_000, 1))
    consumer = q.own(100)
    assert ids(consumer.pull()) == ["a"]
    q.put("d", limit=JobLimit("api", 1000, "", 1000, 1000))
    move_time(q.queue, 1000)
    assert ids(consumer.pull()) == ["b", "c", "d"]


@every_place
def test_an_old_job_that_comes_back_keeps_to_the_newest_number(q: QueueFixture) -> None:
    q.put("old", "older", limit=JobLimit("db", 1))
    consumer = q.own(1)
    (job,) = consumer.pull()
    q.put("x", "y", "z", limit=JobLimit("db", 3))
    consumer.retry(job, delay=0)
    assert q.queue.counts().ready == 3


@every_place
def test_those_who_wait_hear_of_a_number_that_comes_with_a_permit(q: QueueFixture) -> None:
    """A job that waits elsewhere declares its other limits when it becomes ready."""
    execute(q.queue.redis, stop_clock(q.queue.keys, 1_800_000_000_000))
    q.put("c", "d", limit=JobLimit("wide", 1), delay_ms=20)
    move_time(q.queue, 5)
    q.put("a", limit=JobLimit("crm", 1))
    q.put("b", limit=[JobLimit("crm", 1), JobLimit("wide", 4)])
    move_time(q.queue, 20)
    consumer = q.own(9)
    first = consumer.pull()
    assert sorted(ids(first)) == ["a", "c"]
    consumer.settle(ack=[job for job in first if job.id == "a"])
    assert sorted([*ids(consumer.pull()), *ids(consumer.pull())]) == ["b", "d"]
