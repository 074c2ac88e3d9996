"""What people do with jobs that wait: another priority, the front, now instead of later."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import JobBlocked
from rqueue.model.job import JobState
from rqueue.model.job_filter import JobFilter
from rqueue.protocol import commands
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, every_place, ids

HOUR = 3_600_000
DAYS = 24 * HOUR


def sound(q: QueueFixture) -> None:
    assert invariants.of_state(q.look()) == []


def changes(q: QueueFixture) -> list[str]:
    """The jobs whose change the history tells of."""
    return [row["id"] for row in q.look().history if row["outcome"] == "changed"]


def test_a_job_of_another_priority_stands_at_the_tail_of_it(q: QueueFixture) -> None:
    """A-38: it keeps its id, and has a new position."""
    q.put("h1", "h2", priority=9)
    q.put("a", "b", "c")
    assert q.queue.set_priority("b", 9) and q.queue.set_priority("a", 9)
    assert q.queue.set_priority("h1", 0) and q.queue.set_priority("c", 4)
    sound(q)
    assert ids(q.join().pull()) == ["h2", "b", "a", "c", "h1"]
    assert changes(q) == ["b", "a", "h1"], "c had that priority"


def test_a_scheduled_job_of_another_priority_waits_for_its_time(q: QueueFixture) -> None:
    """A-38: also one whose place is kept: it is the first one of its new level."""
    q.put("later", delay_ms=HOUR)
    c = q.join()
    q.put("aside")
    (job,) = c.pull()
    c.settle(retry=[commands.Retried(job.id, HOUR, "aside", False, b"")])
    q.put("high", priority=9)
    assert q.queue.set_priority("later", 9) and q.queue.set_priority("aside", 9)
    sound(q)
    assert ids(c.pull()) == ["high"]
    move_time(q.queue, HOUR + 1)
    q.put("last", priority=9)
    jobs = c.pull()
    assert [(job.id, job.level) for job in jobs][2:] == [("last", 9)]
    assert {(job.id, job.level) for job in jobs[:2]} == {("later", 9), ("aside", 9)}
    sound(q)


def test_a_job_that_does_not_wait_stays_as_it_is(q: QueueFixture) -> None:
    """A-38."""
    q.put("held", "dead", "done", "cancelled")
    c = q.join()
    c.pull()
    c.reject("dead", "no")
    c.ack("done")
    q.queue.cancel("cancelled")
    for id in ("held", "dead", "done", "cancelled", "never"):
        assert q.queue.set_priority(id, 9) == 0
        assert q.queue.move_to_front(id) == 0
    sound(q)
    assert changes(q) == []
    assert c.release("held")
    assert [job.level for job in c.pull()] == [4]


def test_jobs_come_to_the_front_in_the_order_in_which_they_are_named(q: QueueFixture) -> None:
    """A-38: before others that were due, and no higher than their level."""
    q.put("high", priority=9)
    q.put("due", delay_ms=1000)
    move_time(q.queue, 1001)
    execute(q.queue.redis, commands.promote(q.queue.keys))
    q.put("a", "b", "c", "d")
    assert q.queue.move_to_front("c", "d", "never") == 2
    assert q.queue.move_to_front("b") == 1
    sound(q)
    c = q.join()
    assert ids(c.pull()) == ["high", "b", "c", "d", "due", "a"]
    assert c.release("c") and c.release("a")
    q.put("e")
    assert ids(c.pull()) == ["c", "a", "e"], "it keeps the place that it was given"


def test_many_jobs_come_to_the_front(q: QueueFixture) -> None:
    names = [f"j{n:03}" for n in range(120)]
    q.put("first", *names)
    assert q.queue.move_to_front(*reversed(names)) == 120
    sound(q)
    got: list[str] = []
    c = q.join(200)
    while jobs := c.pull():
        got += ids(jobs)
    assert got == [*reversed(names), "first"]


def test_a_job_that_was_due_before_a_move_to_the_front_comes_behind(q: QueueFixture) -> None:
    """Also where nobody had promoted it."""
    q.put("due", delay_ms=1000)
    move_time(q.queue, 5000)
    q.put("a", "b")
    assert q.queue.move_to_front("b") == 1
    assert ids(q.join().pull()) == ["b", "due", "a"]


def test_a_scheduled_job_does_not_come_to_the_front(q: QueueFixture) -> None:
    q.put("later", delay_ms=HOUR)
    assert q.queue.move_to_front("later") == 0
    assert q.join().pull() == []


def test_of_a_group_only_the_first_job_can_be_moved(q: QueueFixture) -> None:
    """A-38, Q-65."""
    q.queue.configure(kind="groups")
    q.put("free1")
    q.put("a1", "a2", group="a")
    q.put("b1", "b2", group="b")
    q.put("free2")
    for move in (lambda: q.queue.set_priority("a2", 9), lambda: q.queue.move_to_front("a2")):
        with pytest.raises(JobBlocked, match="'a1' is the first") as caught:
            move()
        assert caught.value.first == "a1"
    assert q.queue.move_to_front("b1") == 1
    assert q.queue.set_priority("a1", 9) == 1
    assert q.queue.move_to_front("free2") == 1
    sound(q)
    c = q.join()
    assert ids(c.pull()) == ["a1", "free2", "b1", "free1"]
    assert ids(c.settle(ack=["b1"], pull=True)) == ["b2"]
    assert c.release("a1") and ids(c.pull()) == ["a1"]
    assert ids(c.settle(ack=["a1"], pull=True)) == ["a2"]
    sound(q)


def test_a_job_with_a_time_to_live_expires_where_it_was_moved(q: QueueFixture) -> None:
    q.put("a", "b", "c", ttl=10)
    assert q.queue.set_priority("b", 9) and q.queue.move_to_front("c") == 1
    sound(q)
    move_time(q.queue, 10_001)
    assert q.join().pull() == []
    sound(q)
    assert q.look().meta["expired"] == "3"


def test_a_signed_job_of_another_priority_is_signed_for_it(
    server: EmbeddedRedis, queue_name: str
) -> None:
    settings = Settings(url=server.url, signing_keys={"k1": "a secret of some length"})
    with Queue(queue_name, settings=settings) as queue:
        queue.send("t", [1], None, Options(id="a", headers={"x": "y"}))
        assert queue.set_priority("a", 9) == 1
        with queue.consumer(renew=False) as c:
            (job,) = c.pull()
            assert queue.envelope(job).args == [1] and job.level == 9


def test_all_scheduled_jobs_are_made_ready_in_the_order_of_their_times(
    q: QueueFixture,
) -> None:
    start = q.queue.counts().now
    names = [f"j{n:03}" for n in range(600)]
    places = [(n * 7) % 600 for n in range(600)]  # not enqueued in this order
    q.put_all((names[place], {"at_ms": start + HOUR + place * 1000}) for place in places)
    q.put("now")
    assert q.queue.promote_all() == 600
    sound(q)
    c = q.join(700)
    got: list[str] = []
    while jobs := c.pull():
        got += ids(jobs)
    assert got == [*names, "now"]
    assert q.queue.promote_all() == 0


@every_place
def test_scheduled_jobs_that_fit_a_filter_are_made_ready(q: QueueFixture) -> None:
    labels = Options(delay_ms=HOUR, labels={"tenant": 7, "paid": True})
    q.queue.send("send", [1], None, labels.merged(id="a"))
    q.queue.send("send", [2], None, Options(id="b", delay_ms=HOUR))
    q.queue.send("make", [3], None, labels.merged(id="c"))
    assert q.queue.promote_all(JobFilter(task="send", labels={"tenant": "7"})) == 1
    assert q.queue.job("a").state() is JobState.READY
    assert q.queue.promote_all(JobFilter(labels={"paid": "true"})) == 1
    assert q.queue.job("c").state() is JobState.READY
    assert q.queue.promote_all(JobFilter(task="never")) == 0
    assert q.queue.promote_all(JobFilter(task="send")) == 1
