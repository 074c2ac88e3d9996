"""A ring: at most so many jobs are ready, and the oldest of the lowest level makes room."""

import pytest

from rqueue.errors import ConfigError, JobDisplaced
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_place, ids


@pytest.fixture
def ring(q: QueueFixture) -> QueueFixture:
    """A queue that keeps three jobs."""
    q.queue.configure(ring=3)
    return q


def waiting(q: QueueFixture) -> list[str]:
    """The ready jobs, in their order."""
    return ids(q.join(100, mode="browse").pull())


def displaced(q: QueueFixture) -> int:
    return int(q.queue.counts().meta.get("displaced", "0"))


def batch(q: QueueFixture, *puts: Put) -> None:
    execute(q.queue.redis, commands.enqueue(q.queue.keys, puts))


def test_what_is_displaced_ends_with_record_row_and_answer(ring: QueueFixture) -> None:
    """Q-67."""
    first = ring.put("a")
    ring.put("b", "c", "d")
    assert waiting(ring) == ["b", "c", "d"]
    with pytest.raises(JobDisplaced, match="a"):
        first.result(PATIENCE)
    assert first.state() is JobState.DISPLACED
    assert [(row["id"], row["outcome"]) for row in ring.look().history] == [("a", "displaced")]
    assert displaced(ring) == 1


def test_a_lower_level_makes_room_first(ring: QueueFixture) -> None:
    """X-08: never a job of a higher level while a lower one waits."""
    ring.put("a", priority=9)
    ring.put("b", "c", priority=0)
    ring.put("d", priority=4)
    assert waiting(ring) == ["a", "d", "c"]


def test_an_arrival_may_itself_make_room(ring: QueueFixture) -> None:
    ring.put("a", "b", "c", priority=9)
    last = ring.put("d", priority=0)
    assert last.state() is JobState.DISPLACED
    assert waiting(ring) == ["a", "b", "c"]


def test_a_batch_that_is_larger_keeps_its_last_ones(ring: QueueFixture) -> None:
    ring.put("old")
    batch(ring, *(Put(str(n), b"[]") for n in range(1000)))
    batch(ring, Put("last", b"[]"))
    assert waiting(ring) == ["998", "999", "last"]


def test_held_and_scheduled_jobs_do_not_count(ring: QueueFixture) -> None:
    """X-04: what a consumer holds is not taken away."""
    ring.put("a", "b")
    consumer = ring.join(2)
    consumer.pull()
    ring.put("s", delay_ms=1000)
    ring.put("c", "d", "e")
    assert (waiting(ring), displaced(ring)) == (["c", "d", "e"], 0)
    consumer.settle(ack=["a", "b"])
    assert displaced(ring) == 0


@pytest.mark.parametrize("outcome", ["release", "retry", "leave"])
def test_what_comes_back_into_a_full_ring_is_the_oldest(ring: QueueFixture, outcome: str) -> None:
    """X-08."""
    ring.put("a")
    consumer = ring.join(1)
    (job,) = consumer.pull()
    ring.put("b", "c", "d")
    match outcome:
        case "release":
            consumer.settle(release=[job])
        case "retry":
            consumer.retry(job)
        case _:
            consumer.close()
    assert waiting(ring) == ["b", "c", "d"]
    assert ring.queue.job("a").state() is JobState.DISPLACED


def test_what_comes_back_at_a_higher_level_makes_others_go(ring: QueueFixture) -> None:
    ring.put("a", priority=9)
    consumer = ring.join(1)
    (job,) = consumer.pull()
    ring.put("b", "c", "d")
    consumer.settle(release=[job])
    assert waiting(ring) == ["a", "c", "d"]


def test_a_retry_to_the_tail_makes_the_oldest_go(ring: QueueFixture) -> None:
    ring.put("a")
    consumer = ring.join(1)
    (job,) = consumer.pull()
    ring.put("b", "c", "d")
    consumer.retry(job, place="tail")
    assert waiting(ring) == ["c", "d", "a"]


def test_what_becomes_due_makes_room(ring: QueueFixture) -> None:
    ring.put("s", "t", delay_ms=1000)
    ring.put("a", "b", "c")
    move_time(ring.queue, 1001)
    execute(ring.queue.redis, commands.promote(ring.queue.keys, []))
    assert waiting(ring) == ["a", "b", "c"]
    assert displaced(ring) == 2


def test_dead_letters_that_live_again_make_room(ring: QueueFixture) -> None:
    ring.put("a")
    consumer = ring.join(1)
    consumer.pull()
    consumer.reject("a", "no")
    consumer.close()
    ring.put("b", "c", "d")
    assert ring.requeue("a") == 1
    assert waiting(ring) == ["c", "d", "a"]


def test_a_cancelled_job_makes_room_and_is_none(ring: QueueFixture) -> None:
    ring.put("a", "b", "c")
    assert ring.queue.cancel("b")
    ring.put("d")
    assert (waiting(ring), displaced(ring)) == (["a", "c", "d"], 0)
    ring.put("e", "f")
    assert (waiting(ring), displaced(ring)) == (["d", "e", "f"], 2)
    assert ring.look().meta.get("marked", "0") == "0"


def test_a_lower_limit_holds_at_once(ring: QueueFixture) -> None:
    ring.put("a", "b", "c")
    ring.queue.configure(ring=1)
    assert waiting(ring) == ["c"]
    ring.queue.configure(ring=0)
    ring.put("d", "e", "f", "g")
    assert len(waiting(ring)) == 5


def test_who_waits_is_notified_of_what_is_left(ring: QueueFixture) -> None:
    """H-16: one consumer is notified of a batch of which one stays."""
    ring.queue.configure(ring=1)
    consumers = [ring.join(1) for _ in range(3)]
    for consumer in consumers:
        consumer.pull()
    batch(ring, *(Put(str(n), b"[]") for n in range(5)))
    assert sorted(ring.state(one) for one in consumers) == ["interested", "interested", "notified"]


@every_place
def test_an_id_that_is_known_displaces_nothing(ring: QueueFixture) -> None:
    ring.put("a", "b", "c", "c")
    assert displaced(ring) == 0


def test_who_waits_for_the_bytes_of_a_displaced_job_looks_again(ring: QueueFixture) -> None:
    ring.queue.configure(ring=1)
    consumer = ring.join(2, bytes=200)
    ring.put("a", padding=100)
    assert ids(consumer.pull()) == ["a"]
    ring.put("b", padding=150)
    consumer.pull()
    assert ring.state(consumer) == "not_interested"
    ring.put("c")
    assert ids(consumer.pull()) == ["c"]


def test_a_queue_with_jobs_becomes_a_ring(q: QueueFixture) -> None:
    q.put("a", "b", "c")
    q.queue.configure(ring=2)
    assert q.look().meta["v"] == "1 ring levels"
    assert waiting(q) == ["b", "c"]


@every_place
def test_refusals(ring: QueueFixture) -> None:
    for wrong in (-1, 1.5, "3"):
        with pytest.raises(ConfigError, match="ring"):
            ring.queue.configure(ring=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not both"):
        ring.put("a", group="g")
