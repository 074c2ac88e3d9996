"""A server that has reached its memory limit: nothing more is taken in, everything else goes on."""

from collections.abc import Callable, Iterator

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisOutOfMemory
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.bench import Bench, ids

pytestmark = pytest.mark.each_server


@pytest.fixture
def bench(make_server: Callable[..., EmbeddedRedis]) -> Iterator[Bench]:
    """A queue on a server of its own."""
    with Queue("q", make_server().url) as queue:
        bench = Bench(queue)
        yield bench
        bench.close()


def fill(bench: Bench) -> None:
    """From now on the server is over its limit."""
    bench.queue.redis.config_set("maxmemory", 1)


def test_an_enqueue_is_refused_and_stores_nothing(bench: Bench) -> None:
    """H-10."""
    bench.put("A")
    bench.join(5).pull()
    before = bench.look()
    fill(bench)
    for options in ({}, {"delay_ms": 1000}, {"priority": 9}, {"immediate": True}):
        with pytest.raises(RedisOutOfMemory):
            bench.put("B", **options)
    assert not (wrong := invariants.unchanged(before, bench.look())), wrong


@pytest.mark.parametrize("bytes", [0, 10_000])
def test_workers_drain_the_queue(bench: Bench, bytes: int) -> None:
    """H-10: pull, settle in every way, register, renew, leave."""
    bench.put(*"ABCDEFGH", max_deliveries=2)
    bench.put("later", delay_ms=60_000)
    fill(bench)
    consumer = bench.join(6, bytes=bytes)
    assert ids(consumer.pull()) == list("ABCDEF")
    assert consumer.ack("A", {"the": "result"})
    assert consumer.retry("B", error={"type": "E"})
    assert consumer.retry("C", delay=30, error={"type": "E"})
    assert consumer.retry("D", place="tail")
    assert consumer.reject("E", "no")
    assert consumer.release("F")
    assert consumer.ack("A") is False
    consumer.settle(ack=["A"], batch=b"x", rows=0)
    assert bench.renew(consumer) == []
    assert consumer.interest(7, bytes) in ("notified", "interested")
    assert ids(consumer.pull()) == list("BFGHD")
    assert bench.queue.job("A").result(0) == {"the": "result"}
    consumer.close()
    assert bench.queue.counts().ready == 5


def test_the_dead_are_reclaimed(bench: Bench) -> None:
    """H-10."""
    bench.put(*"ABCD", max_deliveries=1)
    dead, gone = bench.join(2), bench.join(2)
    dead.pull()
    gone.pull()
    noted = commands.note_running(bench.queue.keys, gone.name, [commands.Ran("C")])
    execute(bench.queue.redis, noted)
    move_time(bench.queue, 60_000)
    fill(bench)
    call = commands.reclaim(bench.queue.keys, dead.name, b'{"kind":"crash"}', [commands.Ran("A")])
    assert execute(bench.queue.redis, call).held == 0
    bench.renew()
    assert bench.queue.counts().held == 0
    assert bench.queue.job("A").state() is JobState.DEAD
    assert ids(bench.join(5).pull()) == ["B", "D"]


def test_people_can_steer(bench: Bench) -> None:
    """H-10: cancel, pause, resume, promote, requeue, purge."""
    bench.put("ready", "held", "other")
    bench.put("later", "soon", delay_ms=60_000)
    bench.put("dead", priority=9)
    consumer = bench.join(1)
    (job,) = consumer.pull()
    consumer.reject(job, "no")
    assert ids(consumer.pull()) == ["ready"]
    fill(bench)
    assert bench.queue.cancel("ready")
    assert bench.queue.cancel("held")
    assert bench.queue.cancel("later")
    assert bench.queue.pause()
    assert bench.queue.resume()
    assert bench.queue.promote("soon") == 1
    assert bench.requeue("dead") == 1
    assert bench.purge() == 3


def test_a_refused_settle_is_refused_as_ever(bench: Bench) -> None:
    """H-10, H-08: a batch with rows of history, none of whose jobs is held."""
    bench.put("A", "B")
    consumer = bench.join(1)
    consumer.pull()
    fill(bench)
    consumer.settle(ack=["B"], batch=b"row", rows=1)
    assert consumer.refused == ["B"]
    bench.queue.redis.delete(bench.queue.keys.history)
    bench.queue.redis.hdel(bench.queue.keys.meta, "history_rows")


def test_after_room_was_made_all_goes_on(bench: Bench) -> None:
    """H-10."""
    fill(bench)
    with pytest.raises(RedisOutOfMemory):
        bench.put("A")
    bench.queue.redis.config_set("maxmemory", 0)
    assert bench.put("A").created
