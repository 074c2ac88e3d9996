"""Bounded queues: what fits, who waits for room, and who goes in."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import QueueFull
from rqueue.protocol import commands
from rqueue.protocol.commands.room import await_room, with_grant
from rqueue.tasks.context import JobContext, current
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.producers import KINDS, Producers, producing
from tests.support.queue_fixture import QueueFixture, every_place, ids, one_kind


@pytest.fixture(params=KINDS)
def producers(request: pytest.FixtureRequest, q: QueueFixture) -> Iterator[Producers]:
    with producing(request.param, q) as made:
        yield made


def full(q: QueueFixture) -> QueueFull:
    """How one more job is refused."""
    with pytest.raises(QueueFull) as caught:
        q.put("more", max_wait=0)
    return caught.value


@one_kind
def test_a_producer_that_died_while_it_waited_is_passed_over(q: QueueFixture) -> None:
    """Q-67: it has not said again that it waits."""
    q.queue.configure(max_jobs=1, overflow="block")
    q.put("1")
    execute(q.queue.redis, await_room(q.queue.keys, "dead", 1, 1000))
    execute(q.queue.redis, await_room(q.queue.keys, "alive", 1, 60_000))
    move_time(q.queue, 1001)
    assert ids(q.join(1).pull()) == ["1"]
    look = q.look()
    assert look.scores("grants").keys() == {"alive"}
    assert look.hash("wishes").keys() == {b"alive"}


def test_what_comes_back_is_never_refused(q: QueueFixture) -> None:
    """Q-67: releases and retries exceed the limit; arrivals wait until it is kept again."""
    q.queue.configure(max_jobs=2)
    q.put("1", "2")
    consumer = q.join(2)
    assert len(consumer.pull()) == 2
    q.put("3", "4")
    consumer.settle(release=["1"])
    consumer.retry("2", delay=60)
    assert full(q).waiting == 4
    assert ids(consumer.pull()) == ["1", "3"]
    assert full(q).waiting == 2
    consumer.settle(ack=["1"], pull=True)
    q.put("5")
    assert full(q).waiting == 2


@one_kind
def test_what_is_known_is_known_and_never_full(q: QueueFixture) -> None:
    """Q-67, H-18: an enqueue that is sent again, because its answer was lost, changes nothing."""
    q.queue.configure(max_jobs=2)
    q.put("1", "2")
    assert not q.put("1").created
    again = q.queue.enqueue_puts([commands.Put("1", b"[]"), commands.Put("2", b"[]")])
    assert (again.accepted, again.known) == (0, (0, 1))
    with pytest.raises(QueueFull) as caught:
        q.queue.enqueue_puts([commands.Put("2", b"[]"), commands.Put("3", b"[]")])
    assert caught.value.jobs == 1
    assert q.listed() == ["1", "2"]


@one_kind
def test_a_batch_is_taken_whole_or_not_at_all(q: QueueFixture, producers: Producers) -> None:
    """Q-67."""
    q.queue.configure(max_jobs=5)
    q.put("1", "2", "3")
    with pytest.raises(QueueFull, match="3 jobs did not fit"):
        producers.enqueue_many("4", "5", "6").result(PATIENCE)
    assert q.listed() == ["1", "2", "3"]
    assert producers.enqueue_many("4", "5").result(PATIENCE) == "5"
    with pytest.raises(QueueFull, match="6 jobs at once never fit"):
        producers.enqueue_many(*"abcdef").result(PATIENCE)


@one_kind
def test_a_batch_waits_for_room_for_all_of_it(q: QueueFixture, producers: Producers) -> None:
    """Q-67: in its turn, and nobody overtakes it."""
    q.queue.configure(max_jobs=5, overflow="block", resume=100)
    q.put("1", "2", "3", "4")
    batch = producers.enqueue_many("5", "6")
    producers.wait_blocked()
    one = producers.enqueue("7")
    producers.wait_blocked()
    assert q.queue.counts().ready == 4, "there is room for one, and two were first"
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["1"]
    assert batch.result(PATIENCE) == "6"
    assert ids(consumer.settle(ack=["1"], pull=True)) == ["2"]
    assert one.result(PATIENCE) == "7"
    assert q.listed() == ["3", "4", "5", "6", "7"]


@one_kind
def test_a_batch_that_is_larger_than_the_queue_goes_in_pieces(
    q: QueueFixture, producers: Producers
) -> None:
    """Q-67: where producers wait, as long as it takes."""
    q.queue.configure(max_jobs=5, overflow="block")
    names = [f"{number:02}" for number in range(30)]
    batch = producers.enqueue_many(*names)
    consumer = q.join(2)
    got: list[str] = []
    while len(got) < 30:
        jobs = consumer.pull()
        got += ids(jobs)
        consumer.settle(ack=ids(jobs))
    assert batch.result(PATIENCE) == "29"
    assert got == names


@one_kind
def test_a_higher_limit_lets_those_in_that_wait(q: QueueFixture, producers: Producers) -> None:
    """Q-67: and where producers are to wait no longer, they hear that it is full."""
    q.queue.configure(max_jobs=1, overflow="block")
    q.put("1")
    first = producers.enqueue("2")
    producers.wait_blocked()
    q.queue.configure(max_jobs=2, resume=100)
    assert first.result(PATIENCE) == "2"
    second = producers.enqueue("3")
    producers.wait_blocked()
    q.queue.configure(overflow="reject")
    with pytest.raises(QueueFull):
        second.result(PATIENCE)
    q.queue.configure(overflow="block")
    third = producers.enqueue("4")
    producers.wait_blocked()
    q.queue.configure(max_jobs=0)
    assert third.result(PATIENCE) == "4"


@one_kind
def test_a_thousand_that_wait_each_go_in_once(q: QueueFixture) -> None:
    """Q-67: each step notifies some, those that came in the next ones; none in vain."""
    q.queue.configure(max_jobs=2000, overflow="block")
    q.queue.enqueue_puts([commands.Put(f"{n}", b"[]") for n in range(1000)])
    q.queue.enqueue_puts([commands.Put(f"{n}", b"[]") for n in range(1000, 2000)])
    calls = [await_room(q.queue.keys, f"p{n:03}", 1, 600_000) for n in range(1000)]
    assert {execute(q.queue.redis, call) for call in calls} == {"waits"}
    assert q.purge() == 500
    inside = 0
    while granted := sorted(q.look().scores("grants")):
        assert granted == [f"p{n:03}" for n in range(inside, inside + len(granted))]
        for name in granted:
            call = commands.enqueue_one(q.queue.keys, f"of {name}", b"[]")
            assert execute(q.queue.redis, with_grant(call, name)).accepted == 1
        inside += len(granted)
    assert inside == 500
    assert full(q).waiting == 2000


def test_a_job_of_the_queue_itself_never_waits(server: EmbeddedRedis, queue_name: str) -> None:
    """Q-67: if all workers waited in their own queue, nobody would make room."""
    with Queue(queue_name, server.url) as queue, Queue("another", server.url) as other:
        queue.configure(max_jobs=1, overflow="block")
        queue.send("t", [], None, Options(id="1"))
        job = queue.consumer(jobs=1, renew=False).register().pull()[0]
        queue.send("t")
        token = current.set(JobContext(job, "t", queue_name))
        try:
            with pytest.raises(QueueFull):
                queue.send("t")
            with pytest.raises(QueueFull):
                other.at(queue_name).send("t")
        finally:
            current.reset(token)


@one_kind
def test_a_producer_that_gives_up_leaves_nothing(q: QueueFixture, producers: Producers) -> None:
    """Q-67, C-10."""
    q.queue.configure(max_jobs=1, overflow="block")
    q.put("1")
    before = set(q.look().keys)
    with pytest.raises(QueueFull, match=r"after \d"):
        producers.enqueue("2", max_wait=0.05).result(PATIENCE)
    assert set(q.look().keys) == before


@pytest.mark.each_server
@one_kind
def test_all_places_for_waiting_jobs_count(q: QueueFixture, client: redis.Redis) -> None:
    """X-16: levels, groups, the schedule; cancelled and expired ones do not."""
    q.queue.configure(max_jobs=6)
    q.put("1")
    q.put("2", priority=9)
    q.put("3", "4", "5", group="g")
    q.put("6", delay_ms=60_000)
    assert full(q).waiting == 6
    q.queue.cancel("1")
    q.queue.cancel("4")
    assert q.queue.counts().more["bounded"] == 4
    q.put("7", "8")
    assert full(q).waiting == 6
    q.queue.promote("6")
    assert full(q).waiting == 6


@one_kind
def test_what_follows_a_job_is_let_in_with_its_ack(q: QueueFixture) -> None:
    """Q-67, Q-73: a job that is done has to be settled; other transactions are refused."""
    q.queue.configure(max_jobs=1, overflow="block")
    consumer = q.own(1)
    q.put("1", "2")
    consumer.pull(recall=True)
    with q.queue.transaction(consumer) as transaction:
        transaction.ack("1")
        transaction.send("t", options=Options(id="3"))
    assert q.listed() == ["2", "3"]
    with pytest.raises(QueueFull), q.queue.transaction() as alone:
        alone.send("t")
    assert full(q).waiting == 2


@every_place
@pytest.mark.parametrize("bound", [{"max_jobs": 2}, {"max_bytes": 25}], ids=str)
@pytest.mark.parametrize("expired", ["end", "dead"])
def test_what_has_expired_makes_room(q: QueueFixture, bound: dict[str, Any], expired: Any) -> None:
    """A-23: also if nobody serves the queue."""
    q.queue.configure(**bound, expired=expired)
    q.put("a", "b", ttl=1)
    assert full(q)
    move_time(q.queue, 2000)
    q.put("c", ttl=9)
    q.put("d")
    assert full(q)
    assert q.queue.counts().ready == 2


@one_kind
def test_a_producer_does_not_wait_for_what_has_expired(q: QueueFixture) -> None:
    q.queue.configure(max_jobs=2, overflow="block")
    q.put("a", "b", ttl=1)
    move_time(q.queue, 2000)
    answer = execute(q.queue.redis, await_room(q.queue.keys, "waits", 1, 60_000))
    assert answer == "granted"
