"""A server that has reached its memory limit: nothing more is taken in, everything else goes on."""

from collections.abc import Callable, Iterator

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisOutOfMemory
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands.settle import Window
from rqueue.tasks.workflow import chord
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids
from tests.support.workflows import double, total

pytestmark = pytest.mark.each_server


@pytest.fixture
def q(make_server: Callable[..., EmbeddedRedis]) -> Iterator[QueueFixture]:
    """A queue on a server of its own."""
    with Queue("q", make_server().url) as queue:
        q = QueueFixture(queue)
        yield q
        q.close()


def fill(q: QueueFixture) -> None:
    """From now on the server is over its limit."""
    q.queue.redis.config_set("maxmemory", 1)


def test_an_enqueue_is_refused_and_stores_nothing(q: QueueFixture) -> None:
    """H-10."""
    q.put("A")
    q.join(5).pull()
    before = q.look()
    fill(q)
    for options in ({}, {"delay_ms": 1000}, {"priority": 9}, {"immediate": True}):
        with pytest.raises(RedisOutOfMemory):
            q.put("B", **options)
    assert not (wrong := invariants.unchanged(before, q.look())), wrong


@pytest.mark.parametrize("bytes", [0, 10_000])
def test_workers_drain_the_queue(q: QueueFixture, bytes: int) -> None:
    """H-10: pull, settle in every way, register, renew, leave."""
    q.put(*"ABCDEFGH", max_deliveries=2)
    q.put("later", delay_ms=60_000)
    fill(q)
    consumer = q.join(6, bytes=bytes)
    assert ids(consumer.pull()) == list("ABCDEF")
    assert consumer.ack("A", {"the": "result"})
    assert consumer.retry("B", error={"type": "E"})
    assert consumer.retry("C", delay=30, error={"type": "E"})
    assert consumer.retry("D", place="tail")
    assert consumer.reject("E", "no")
    assert consumer.release("F")
    assert consumer.ack("A") is False
    consumer.settle(ack=["A"], batch=b"x", rows=0)
    assert q.renew(consumer) == []
    assert consumer.interest(7, bytes) in ("notified", "interested")
    assert ids(consumer.pull()) == list("BFGHD")
    assert q.queue.job("A").result(0) == {"the": "result"}
    consumer.close()
    assert q.queue.counts().ready == 5


def test_the_dead_are_reclaimed(q: QueueFixture) -> None:
    """H-10."""
    q.put(*"ABCD", max_deliveries=1)
    dead, gone = q.join(2), q.join(2)
    dead.pull()
    gone.pull()
    noted = commands.note_running(q.queue.keys, gone.name, [commands.Ran("C")])
    execute(q.queue.redis, noted)
    move_time(q.queue, 60_000)
    fill(q)
    call = commands.reclaim(q.queue.keys, dead.name, b'{"kind":"crash"}', [commands.Ran("A")])
    assert execute(q.queue.redis, call).held == 0
    q.renew()
    assert q.queue.counts().held == 0
    assert q.queue.job("A").state() is JobState.DEAD
    assert ids(q.join(5).pull()) == ["B", "D"]


def test_people_can_steer(q: QueueFixture) -> None:
    """H-10: cancel, pause, resume, promote, requeue, purge."""
    q.put("ready", "held", "other")
    q.put("later", "soon", delay_ms=60_000)
    q.put("dead", priority=9)
    consumer = q.join(1)
    (job,) = consumer.pull()
    consumer.reject(job, "no")
    assert ids(consumer.pull()) == ["ready"]
    fill(q)
    assert q.queue.cancel("ready")
    assert q.queue.cancel("held")
    assert q.queue.cancel("later")
    assert q.queue.pause()
    assert q.queue.resume()
    assert q.queue.promote("soon") == 1
    assert q.requeue("dead") == 1
    assert q.purge() == 3


@pytest.mark.parametrize("results", [True, False], ids=["with results", "without"])
def test_a_job_of_another_queue_hears_of_its_parents(q: QueueFixture, results: bool) -> None:
    """H-10: the word of their ends counts, and is not lost."""
    other = QueueFixture(q.queue.at("other"))
    member = double.options(queue="other")
    last = total.options(queue="q")
    callback = last.s() if results else last.si([2, 4])
    q.queue.enqueue_workflow(chord([member.s(1), member.s(2)], callback), id="w", spread=True)
    consumer = other.join(2)
    jobs = consumer.pull()
    fill(q)
    for job, result in zip(jobs, (2, 4), strict=True):
        assert consumer.ack(job, result)
    assert other.queue.counts().outgoing == 0
    assert ids(q.join(1).pull()) == ["w"]


def test_a_refused_settle_is_refused_as_ever(q: QueueFixture) -> None:
    """H-10, H-08: a batch with rows of history, none of whose jobs is held."""
    q.put("A", "B")
    consumer = q.join(1)
    consumer.pull()
    fill(q)
    consumer.settle(ack=["B"], batch=b"row", rows=1)
    assert consumer.refused == ["B"]
    q.queue.redis.delete(q.queue.keys.history)
    q.queue.redis.hdel(q.queue.keys.meta, "history_rows")


def test_a_pull_that_brings_nothing_moves_its_consumer(q: QueueFixture) -> None:
    """H-10: also by the first write of the step."""
    consumer = q.join(3)
    assert (consumer.pull(), q.state(consumer)) == ([], "interested")
    fill(q)
    for jobs, state in ((0, "not_interested"), (3, "interested"), (0, "not_interested")):
        call = commands.pull(q.queue.keys, consumer.name, str(consumer.term), Window(jobs))
        assert execute(q.queue.redis, call).jobs == []
        assert q.state(consumer) == state


def test_after_room_was_made_all_goes_on(q: QueueFixture) -> None:
    """H-10."""
    fill(q)
    with pytest.raises(RedisOutOfMemory):
        q.put("A")
    q.queue.redis.config_set("maxmemory", 0)
    assert q.put("A").created
