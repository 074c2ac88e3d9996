"""A stored value that nobody can read goes to the dead letters raw, and takes nobody with it."""

from collections.abc import Callable

import orjson
import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place, ids

RAW = b'abc,def;["x",[],{"a":"b"}]'
GOOD = [f"good-{number}" for number in range(115)]


@pytest.fixture
def held(q: QueueFixture) -> Consumer:
    """Holds a damaged job in the middle of 115 good ones."""
    q.put(*GOOD[:60], "bad", *GOOD[60:])
    q.queue.redis.hset(q.queue.keys.jobs, "bad", RAW)
    consumer = q.join(200)
    assert len(consumer.pull()) == 116
    return consumer


def dead_letter_as_it_is(q: QueueFixture) -> dict[str, str]:
    """Checks that the bad one is dead, with all its bytes; its cause."""
    look = q.look()
    assert q.queue.job("bad").state() is JobState.DEAD
    assert look.jobs["bad"].endswith(RAW)
    cause: dict[str, str] = orjson.loads(look.hash("causes")[b"bad"])
    assert [row["outcome"] for row in look.history if row["id"] == "bad"][-1:] in ([], ["dead"])
    return cause


@pytest.mark.each_server
def test_settled_among_others(q: QueueFixture, held: Consumer) -> None:
    """C-08, X-18: each of the others has its record."""
    cause = {"kind": "undecodable", "type": "Undecodable"}
    held.settle(ack=GOOD, reject=[("bad", cause)])
    assert dead_letter_as_it_is(q).items() >= cause.items()
    assert set(q.look().records) == {*GOOD, "bad"}


def test_retried_it_is_a_dead_letter(q: QueueFixture, held: Consumer) -> None:
    held.retry("bad", error={"type": "ValueError"})
    assert dead_letter_as_it_is(q)["kind"] == "undecodable"
    held.settle(ack=GOOD)
    assert len(q.look().records) == 116


LEAVE: dict[str, Callable[[QueueFixture, Consumer], object]] = {
    "closed": lambda q, consumer: consumer.close(),
    "released": lambda q, consumer: consumer.settle(release=[*GOOD, "bad"]),
    "dead": lambda q, consumer: _reclaim(q, consumer),
}


def _reclaim(q: QueueFixture, consumer: Consumer) -> None:
    execute(q.queue.redis, commands.reclaim(q.queue.keys, consumer.name, b"{}", []))


@pytest.mark.parametrize("how", LEAVE)
def test_released_with_others(q: QueueFixture, held: Consumer, how: str) -> None:
    """The others are back at their places, in order."""
    LEAVE[how](q, held)
    assert dead_letter_as_it_is(q)["kind"] == "undecodable"
    assert ids(q.join(200).pull()) == GOOD


def test_it_can_be_cancelled_and_purged_while_it_waits(q: QueueFixture) -> None:
    q.put("A", "bad", "B", "worse", "C")
    for id in ("bad", "worse"):
        q.queue.redis.hset(q.queue.keys.jobs, id, RAW)
    assert q.queue.cancel("bad")
    assert ids(q.join(1).pull()) == ["A"]
    assert q.purge() == 3
    assert set(q.look().records) == {"bad", "B", "worse", "C"}


def test_parked_it_is_a_dead_letter_when_it_is_due(q: QueueFixture) -> None:
    q.put("bad", "good")
    consumer = q.join()
    consumer.pull()
    parked = [commands.Retried("bad", 1, "park", False, b"{}")]
    keys, window = q.queue.keys, commands.Window(100)
    execute(q.queue.redis, commands.settle(keys, consumer.name, consumer.term, None, retry=parked))
    q.queue.redis.hset(keys.jobs, "bad", RAW)
    q.queue.redis.hincrby(keys.meta, "clock", 1000)
    execute(q.queue.redis, commands.pull(keys, consumer.name, consumer.term, window))
    assert dead_letter_as_it_is(q)["kind"] == "undecodable"


def test_a_dead_one_that_lives_again_can_be_read(q: QueueFixture, held: Consumer) -> None:
    held.settle(ack=GOOD, reject=[("bad", {})])
    assert q.requeue("bad") == 1
    (job,) = held.pull()
    assert (job.id, job.body) == ("bad", RAW)
    held.settle(ack=["bad"])


@every_place
def test_a_key_of_another_type_is_named_and_nothing_is_changed(q: QueueFixture) -> None:
    q.put("A")
    q.queue.redis.set(q.queue.keys.errors, "mine")
    with pytest.raises(Exception, match=rf"{q.queue.keys.errors}.* is a string"):
        q.queue.cancel("A")
    with pytest.raises(Exception, match="rqueue doctor"):
        q.purge()
    q.queue.redis.delete(q.queue.keys.errors)
    assert q.queue.job("A").state() is JobState.READY


@pytest.mark.parametrize(
    "value", [b"1,2,3,4,5,6,7;{}", b"1,2,3,4,5,6,7,8,9;{}", b"1,2,9,0,0,0,0;{}"]
)
@pytest.mark.parametrize("how", ["closed", "released", "dead"])
def test_a_job_written_by_something_else_stays_where_pulls_look(
    q: QueueFixture, value: bytes, how: str
) -> None:
    """Its header names a level that the queue has never used, and a list that no enqueue made."""
    q.put("A")
    q.queue.redis.hset(q.queue.keys.jobs, "foreign", value)
    q.queue.redis.rpush(q.queue.keys.ready(4), "foreign")
    consumer = q.join(10)
    assert ids(consumer.pull()) == ["A", "foreign"]
    LEAVE_WITH[how](q, consumer)
    assert sorted(ids(q.join(10).pull())) == ["A", "foreign"]


LEAVE_WITH: dict[str, Callable[[QueueFixture, Consumer], object]] = {
    **LEAVE,
    "released": lambda q, consumer: consumer.settle(release=["A", "foreign"]),
}
