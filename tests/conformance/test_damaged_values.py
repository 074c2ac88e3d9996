"""A stored value that nobody can read goes to the dead letters raw, and takes nobody with it."""

from collections.abc import Callable

import orjson
import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.support.bench import Bench, ids

RAW = b'abc,def;["x",[],{"a":"b"}]'
GOOD = [f"good-{number}" for number in range(115)]


@pytest.fixture
def held(bench: Bench) -> Consumer:
    """Holds a damaged job in the middle of 115 good ones."""
    bench.put(*GOOD[:60], "bad", *GOOD[60:])
    bench.queue.redis.hset(bench.queue.keys.jobs, "bad", RAW)
    consumer = bench.join(200)
    assert len(consumer.pull()) == 116
    return consumer


def buried_as_it_is(bench: Bench) -> dict[str, str]:
    """Checks that the bad one is dead, with all its bytes; its cause."""
    look = bench.look()
    assert bench.queue.job("bad").state() is JobState.DEAD
    assert look.jobs["bad"].endswith(RAW)
    cause: dict[str, str] = orjson.loads(look.hash("causes")[b"bad"])
    assert [row["outcome"] for row in look.history if row["id"] == "bad"][-1:] in ([], ["dead"])
    return cause


@pytest.mark.each_server
def test_settled_among_others(bench: Bench, held: Consumer) -> None:
    """X-18: each of the others has its record."""
    cause = {"kind": "undecodable", "type": "Undecodable"}
    held.settle(ack=GOOD, reject=[("bad", cause)])
    assert buried_as_it_is(bench).items() >= cause.items()
    assert set(bench.look().records) == {*GOOD, "bad"}


def test_retried_it_is_buried(bench: Bench, held: Consumer) -> None:
    held.retry("bad", error={"type": "ValueError"})
    assert buried_as_it_is(bench)["kind"] == "undecodable"
    held.settle(ack=GOOD)
    assert len(bench.look().records) == 116


LEAVE: dict[str, Callable[[Bench, Consumer], object]] = {
    "closed": lambda bench, consumer: consumer.close(),
    "released": lambda bench, consumer: consumer.settle(release=[*GOOD, "bad"]),
    "dead": lambda bench, consumer: _reclaim(bench, consumer),
}


def _reclaim(bench: Bench, consumer: Consumer) -> None:
    execute(bench.queue.redis, commands.reclaim(bench.queue.keys, consumer.name, b"{}", []))


@pytest.mark.parametrize("how", LEAVE)
def test_given_back_with_others(bench: Bench, held: Consumer, how: str) -> None:
    """The others are back at their places, in order."""
    LEAVE[how](bench, held)
    assert buried_as_it_is(bench)["kind"] == "undecodable"
    assert ids(bench.join(200).pull()) == GOOD


def test_it_can_be_cancelled_and_purged_while_it_waits(bench: Bench) -> None:
    bench.put("A", "bad", "B", "worse", "C")
    for id in ("bad", "worse"):
        bench.queue.redis.hset(bench.queue.keys.jobs, id, RAW)
    assert bench.queue.cancel("bad")
    assert ids(bench.join(1).pull()) == ["A"]
    assert bench.purge() == 3
    assert set(bench.look().records) == {"bad", "B", "worse", "C"}


def test_parked_it_is_buried_when_it_is_due(bench: Bench) -> None:
    bench.put("bad", "good")
    consumer = bench.join()
    consumer.pull()
    parked = [commands.Retried("bad", 1, "park", False, b"{}")]
    keys, window = bench.queue.keys, commands.Window(100)
    execute(
        bench.queue.redis, commands.settle(keys, consumer.name, consumer.term, None, retry=parked)
    )
    bench.queue.redis.hset(keys.jobs, "bad", RAW)
    bench.queue.redis.hincrby(keys.meta, "clock", 1000)
    execute(bench.queue.redis, commands.pull(keys, consumer.name, consumer.term, window))
    assert buried_as_it_is(bench)["kind"] == "undecodable"


def test_a_dead_one_that_lives_again_can_be_read(bench: Bench, held: Consumer) -> None:
    held.settle(ack=GOOD, reject=[("bad", {})])
    assert bench.requeue("bad") == 1
    (job,) = held.pull()
    assert (job.id, job.body) == ("bad", RAW)
    held.settle(ack=["bad"])


def test_a_key_of_another_type_is_named_and_nothing_is_changed(bench: Bench) -> None:
    bench.put("A")
    bench.queue.redis.set(bench.queue.keys.errors, "mine")
    with pytest.raises(Exception, match=rf"{bench.queue.keys.errors}.* is a string"):
        bench.queue.cancel("A")
    with pytest.raises(Exception, match="rqueue doctor"):
        bench.purge()
    bench.queue.redis.delete(bench.queue.keys.errors)
    assert bench.queue.job("A").state() is JobState.READY
