"""Artemis's scheduled delivery. What is due goes to the head of its level in due order (X-06)."""

import random
from collections.abc import Callable

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.model.envelope import unpack
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.tasks.options import Options
from rqueue.testing import frozen_time
from rqueue.transport.redis_client import execute
from tests.support.due_jobs import MINUTE, pass_minutes, put_at, take
from tests.support.queue_fixture import QueueFixture, every_kind, ids
from tests.support.two_queues import second

MakeQueue = Callable[[EmbeddedRedis], QueueFixture]


def scheduled(q: QueueFixture) -> list[str]:
    """The schedule, in its order."""
    return [id for id, *_ in q.look().scheduled]


def delay(consumer: Consumer, id: str, seconds: int) -> None:
    """A held job comes again after so many seconds, at the head."""
    assert consumer.retry(id, delay=seconds, place="head")


def test_ASC_01_random_times_come_out_sorted(q: QueueFixture) -> None:
    """A-05."""
    start = q.queue.counts().now
    for i in range(200):
        q.put(f"j{i}", at_ms=start + MINUTE + random.randrange(1000))
    pass_minutes(q, 2)
    dues = [job.due_ms for job in q.join(300).pull()]
    assert len(dues) == 200 and dues == sorted(dues)


@every_kind
def test_ASC_02_at_one_time_what_was_delivered_before_comes_first(
    q: QueueFixture, kind: str
) -> None:
    """A-05: it has the older position."""
    q.put("early", "late")
    consumer = q.join(2)
    consumer.pull()
    with frozen_time(q.queue):
        now = q.queue.counts().now
        second = [Put(f"late-{i:03}", b"[]", at_ms=now + 2000) for i in range(300)]
        first = [Put(f"early-{i:03}", b"[]", at_ms=now + 1000) for i in range(300)]
        q.queue.enqueue_puts(second)
        delay(consumer, "late", 2)
        q.queue.enqueue_puts(first)
        delay(consumer, "early", 1)
    assert scheduled(q) == [
        "early",
        *(put.id for put in first),
        "late",
        *(put.id for put in second),
    ]


@every_kind
def test_ASC_03_times_are_sorted_however_a_job_came(q: QueueFixture, kind: str) -> None:
    """A-05."""
    q.put("7")
    consumer = q.join(1)
    consumer.pull()
    with frozen_time(q.queue):
        for seconds in (48, 75, 56):
            q.put(str(seconds), delay_ms=seconds * 1000)
        delay(consumer, "7", 7)
        q.put("69", delay_ms=69_000)
    assert scheduled(q) == ["7", "48", "56", "69", "75"]


@every_kind
def test_ASC_05_at_three_times_the_older_ones_come_first(q: QueueFixture, kind: str) -> None:
    """A-05."""
    q.put("00", "06", "12")
    consumer = q.join(3)
    consumer.pull()
    with frozen_time(q.queue):
        for seconds, head in ((48, 0), (59, 12), (49, 6)):
            for number in range(head + 1, head + 6):
                q.put(f"{number:02}", delay_ms=seconds * 1000)
            delay(consumer, f"{head:02}", seconds)
    assert scheduled(q) == [f"{number:02}" for number in range(18)]


def test_ASC_07_a_job_is_not_delivered_before_it_is_due(q: QueueFixture) -> None:
    """A-04, C-24."""
    q.put("A", delay_ms=10 * MINUTE)
    consumer = q.join()
    assert consumer.pull() == []
    assert 9 * MINUTE < consumer.timer_ms <= 10 * MINUTE
    pass_minutes(q, 9.9)
    assert consumer.pull() == []
    pass_minutes(q, 0.2)
    (job,) = consumer.pull()
    assert job.id == "A" and job.due_ms > job.enqueued_ms
    assert consumer.pull() == []


def test_ASC_08_a_scheduled_job_outlives_the_server(
    private_server: EmbeddedRedis, make_q: MakeQueue
) -> None:
    """A-08: it is due when it was, and comes once."""
    q = make_q(private_server)
    q.queue.send("t", ["body"], None, Options(id="A", delay_ms=400))
    private_server.kill()
    private_server.start()
    consumer = q.join()
    ((job, now),) = take(consumer, 1)
    assert now >= job.due_ms == job.enqueued_ms + 400
    assert unpack(job.body)[1] == ["body"]
    assert consumer.pull() == []
    q.close()


def test_ASC_09_jobs_come_when_each_is_due(q: QueueFixture) -> None:
    """a) A-06."""
    put_at(q, [(f"m{i}", 10 + i) for i in range(5)])
    consumer = q.join()
    pass_minutes(q, 10 - 0.5)
    for i in range(5):
        assert consumer.pull() == []
        pass_minutes(q, 1)
        assert ids(consumer.pull()) == [f"m{i}"]


def test_ASC_09_jobs_come_when_each_is_due_after_a_restart(
    private_server: EmbeddedRedis, make_q: MakeQueue
) -> None:
    """b) A-06, A-08: in real time."""
    q = make_q(private_server)
    for number in range(5):
        q.put(str(number), delay_ms=400 + 50 * number)
    private_server.kill()
    private_server.start()
    taken = take(q.join(), 5)
    assert [job.id for job, _ in taken] == list("01234")
    assert [job.id for job, now in taken if now < job.due_ms] == []
    q.close()


@every_kind
def test_ASC_11_scheduled_and_ordinary_jobs_mix(q: QueueFixture, kind: str) -> None:
    """A-02."""
    put_at(q, [("m1", 10), ("m2", 0), ("m3", 11), ("m4", 0), ("m5", 12)])
    consumer = q.join()
    assert ids(consumer.pull()) == ["m2", "m4"]
    pass_minutes(q, 13)
    assert ids(consumer.pull()) == ["m1", "m3", "m5"]


def test_ASC_12_what_a_transaction_schedules_comes_once_when_it_is_due(
    private_server: EmbeddedRedis, make_q: MakeQueue
) -> None:
    """A-12: not before it is committed, and over a restart."""
    q = make_q(private_server)
    with q.queue.transaction() as transaction:
        transaction.send("t", [1], None, Options(id="later", delay_ms=400))
        transaction.send("t", [2], None, Options(id="now"))
        counts = q.queue.counts()
        assert (counts.ready, counts.scheduled) == (0, 0)
    counts = q.queue.counts()
    assert (counts.ready, counts.scheduled) == (1, 1)
    private_server.kill()
    private_server.start()
    consumer = q.join()
    taken = take(consumer, 2)
    assert sorted(job.id for job, _ in taken) == ["later", "now"]
    assert [job.id for job, now in taken if now < job.due_ms] == []
    assert consumer.pull() == []
    q.close()


@every_kind
def test_ASC_13_equal_due_times_keep_the_order_of_enqueue(q: QueueFixture, kind: str) -> None:
    """A-06."""
    at_ms = q.queue.counts().now + MINUTE
    q.put(*"0123456789", at_ms=at_ms)
    pass_minutes(q, 2)
    assert ids(q.join().pull()) == list("0123456789")


@every_kind
@pytest.mark.parametrize("consumer_first", [True, False])
def test_ASC_14_past_and_future_times_around_ordinary_jobs(
    q: QueueFixture, consumer_first: bool, kind: str
) -> None:
    """A-02, X-07: what is due already is an ordinary job."""
    if consumer_first:
        consumer = q.join()
    given = [
        ("1", 7),
        *((id, 0) for id in "234"),
        ("5", 5),
        ("6", 4),
        ("7", 3),
        ("8", 6),
        ("9", -3),
    ]
    put_at(q, given)
    if not consumer_first:
        consumer = q.join()
    assert ids(consumer.pull(recall=True)) == ["2", "3", "4", "9"]
    pass_minutes(q, 8)
    assert ids(consumer.pull()) == ["7", "6", "5", "8", "1"]


def test_ASC_16_a_consumer_that_waits_gets_each_when_it_is_due(q: QueueFixture) -> None:
    """A-06: in real time, a step is 50 ms."""
    consumer = q.join()
    assert consumer.pull() == []
    due = {"1": 7, "5": 5, "6": 4, "7": 3, "8": 6}
    now = q.queue.counts().now
    puts = [Put(id, b'["t"]', at_ms=now + due[id] * 50 if id in due else 0) for id in "12345678"]
    q.queue.enqueue_puts(puts)
    taken = take(consumer, 8)
    assert [job.id for job, _ in taken if job.due_ms] == list("76581")
    assert [job.id for job, _ in taken if not job.due_ms] == list("234")
    assert [job.id for job, now in taken if now < job.due_ms] == []


def test_ASC_17_a_job_that_failed_comes_again_once_after_its_delay(q: QueueFixture) -> None:
    """A-21: in real time."""
    q.put("A")
    consumer = q.join(1)
    consumer.pull()
    failed_ms = q.queue.counts().now
    assert consumer.retry("A", delay=0.3, place="head")
    ((job, now),) = take(consumer, 1)
    assert (job.id, job.attempts) == ("A", 1)
    assert now >= job.due_ms >= failed_ms + 300
    assert consumer.settle(ack=["A"], pull=True) == []


def test_ASC_18_one_scheduled_job_is_made_ready_by_its_id(q: QueueFixture) -> None:
    """A-09."""
    assert q.queue.promote("a") == 0, "nothing is scheduled"
    q.put("a", "b", delay_ms=11 * 24 * 60 * MINUTE)
    c = q.join()
    assert c.pull() == []
    assert q.queue.promote("a") == 1
    assert ids(c.pull()) == ["a"]
    assert q.queue.promote("a") == 0
    assert q.queue.counts().scheduled == 1


@every_kind
def test_ASC_20_a_scheduled_job_is_cancelled(q: QueueFixture, kind: str) -> None:
    """a) A-11."""
    q.put("A", "B", delay_ms=MINUTE)
    assert q.queue.cancel("A")
    assert q.queue.counts().scheduled == 1
    pass_minutes(q, 2)
    assert ids(q.join().pull()) == ["B"]


def test_ASC_20_a_cancelled_job_stays_away_after_a_restart(
    private_server: EmbeddedRedis, make_q: MakeQueue
) -> None:
    """b) A-11, A-08."""
    q = make_q(private_server)
    q.put("A", "B", delay_ms=MINUTE)
    assert q.queue.cancel("A")
    private_server.kill()
    private_server.start()
    assert q.queue.counts().scheduled == 1
    pass_minutes(q, 2)
    assert ids(q.join().pull()) == ["B"]
    q.close()


@every_kind
def test_ASC_21_scheduled_jobs_are_counted_and_listed(q: QueueFixture, kind: str) -> None:
    """A-11, A-08."""
    q.put("later", delay_ms=5 * MINUTE)
    q.put("now")
    counts = q.queue.counts()
    assert (counts.scheduled, counts.ready) == (1, 1)
    assert q.queue.job("later").state() is JobState.SCHEDULED
    page = execute(q.queue.redis, commands.browse_set(q.queue.keys, "scheduled"))
    assert [entry.job.id for entry in page.entries] == ["later"]
    assert page.entries[0].score == page.entries[0].job.due_ms == counts.next_due_ms
    pass_minutes(q, 6)
    assert len(q.join().pull()) == 2
    assert q.queue.counts().scheduled == 0


def test_ASC_25_the_due_time_is_the_same_after_a_restart(
    private_server: EmbeddedRedis, make_q: MakeQueue
) -> None:
    """A-08."""
    q = make_q(private_server)
    at_ms = q.queue.counts().now + 11 * 24 * 60 * MINUTE
    q.put("A", at_ms=at_ms)
    private_server.kill()
    private_server.start()
    page = execute(q.queue.redis, commands.browse_set(q.queue.keys, "scheduled"))
    assert [(entry.job.id, entry.job.due_ms) for entry in page.entries] == [("A", at_ms)]
    q.close()


def test_ASC_27_what_is_due_already_is_an_ordinary_job(q: QueueFixture) -> None:
    """A-02, X-07: none is delayed, and each goes to the tail."""
    q.put("n1", "n2")
    q.put("a", at_ms=q.queue.counts().now - 500)
    q.put("b", delay_ms=0)
    with pytest.raises(ConfigError):
        q.put("c", delay_ms=-1)
    assert q.queue.counts().scheduled == 0
    assert ids(q.join().pull()) == ["n1", "n2", "a", "b"]


def test_ASC_30_due_times_are_whole_numbers() -> None:
    """A-01."""
    assert Options(at_ms=2**53 - 1).at_ms == 2**53 - 1
    for wrong in (0, 1_700_000_000, 1.5, "123", -1, 2**53 + 1, True):
        with pytest.raises(ConfigError):
            Options(at_ms=wrong)  # type: ignore[arg-type]


def test_ASC_29_what_is_moved_keeps_its_due_time(q: QueueFixture) -> None:
    """A-10: three are scheduled, two are not."""
    start = q.queue.counts().now
    due = {f"s{n}": start + n * MINUTE for n in (3, 1, 2)}
    for id, at_ms in due.items():
        q.put(id, at_ms=at_ms)
    q.put("n1", "n2")
    with second(q) as target:
        assert q.queue.move_all(target.queue.name) == 5
        assert scheduled(q) == [] and q.queue.counts().scheduled == 0
        assert {id: at for id, at, *_ in target.look().scheduled} == due
        assert ids(target.join().pull()) == ["n1", "n2"]
        pass_minutes(target, 4)
        assert ids(target.join().pull()) == ["s1", "s2", "s3"]
