"""A ring in bytes: at most so many are ready, and the oldest of the lowest level makes room."""

import pytest

from rqueue.errors import ConfigError, JobDisplaced, QueueFull
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.conformance.test_bounded_bytes import BODY, waiting_bytes
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, ids, one_kind


@pytest.fixture
def ring(q: QueueFixture) -> QueueFixture:
    """A queue that keeps three jobs without padding, and nine bytes more."""
    q.queue.configure(ring_bytes=3 * BODY + 9)
    return q


def waiting(q: QueueFixture) -> list[str]:
    """The ready jobs, in their order."""
    return ids(q.join(100, mode="browse").pull())


def test_the_oldest_make_room_as_many_as_it_takes(ring: QueueFixture) -> None:
    """Q-67."""
    first = ring.put("a")
    ring.put("b", "c")
    ring.put("d", padding=9)
    assert waiting(ring) == ["b", "c", "d"]
    with pytest.raises(JobDisplaced, match="a"):
        first.result(PATIENCE)
    assert first.state() is JobState.DISPLACED
    ring.put("e", padding=BODY + 1)
    assert waiting(ring) == ["e"]
    assert waiting_bytes(ring) == 2 * BODY + 1


def test_of_what_never_fits_nothing_is_displaced(ring: QueueFixture) -> None:
    """Q-67: it is refused with a sentence, and so is the whole call."""
    ring.put("a", "b", "c")
    with pytest.raises(QueueFull) as caught:
        ring.put("d", padding=3 * BODY)
    assert caught.value.never
    assert f"1 job of {4 * BODY} bytes never fits into" in str(caught.value)
    with pytest.raises(QueueFull):
        ring.queue.enqueue_puts([Put("e", b"[]"), Put("f", b"x" * 4 * BODY)])
    assert waiting(ring) == ["a", "b", "c"]
    assert ring.queue.counts().meta.get("displaced", "0") == "0"


def promote(q: QueueFixture) -> None:
    """What is due becomes ready."""
    execute(q.queue.redis, commands.promote(q.queue.keys))


@one_kind
def test_a_batch_displaces_the_first_of_its_own(ring: QueueFixture) -> None:
    """Q-67: each fits, and the last ones stay."""
    puts = [Put(id, b"x" * BODY) for id in "abcdef"]
    assert execute(ring.queue.redis, commands.enqueue(ring.queue.keys, puts)).accepted == 6
    assert waiting(ring) == ["d", "e", "f"]


@one_kind
def test_lower_levels_make_room_first(ring: QueueFixture) -> None:
    """Q-67, X-08: also where that is the job that comes."""
    ring.put("a", "b", "c", priority=9)
    ring.put("d", priority=0)
    assert waiting(ring) == ["a", "b", "c"]
    assert ring.queue.job("d").state() is JobState.DISPLACED
    ring.put("e", priority=9)
    assert waiting(ring) == ["b", "c", "e"]


def test_what_is_held_or_scheduled_takes_no_room(ring: QueueFixture) -> None:
    """Q-67: until it comes back, or is due; a held one that comes back is the oldest most often."""
    ring.put("a", "b", "c")
    consumer = ring.join(2)
    assert ids(consumer.pull()) == ["a", "b"]
    ring.put("d", "e")
    ring.put("s", delay_ms=1000)
    assert waiting(ring) == ["c", "d", "e"]
    consumer.settle(release=["a"])
    assert waiting(ring) == ["c", "d", "e"]
    assert ring.queue.job("a").state() is JobState.DISPLACED
    consumer.retry("b", delay=2)
    consumer.close()
    move_time(ring.queue, 1001)
    promote(ring)
    assert len(waiting(ring)) == 3
    assert waiting_bytes(ring) == 3 * BODY
    move_time(ring.queue, 2001)
    promote(ring)
    assert waiting_bytes(ring) == 3 * BODY


@one_kind
def test_both_limits_hold(q: QueueFixture) -> None:
    """Q-67."""
    q.queue.configure(ring=2, ring_bytes=3 * BODY)
    q.put("a", "b", "c")
    assert waiting(q) == ["b", "c"]
    q.put("d", padding=BODY + 1)
    assert waiting(q) == ["d"]
    q.queue.configure(ring=0)
    q.put("e")
    assert waiting(q) == ["e"]
    q.queue.configure(ring_bytes=0)
    q.put("f", "g", padding=1000)
    assert waiting(q) == ["e", "f", "g"]
    with pytest.raises(ConfigError, match="ring"):
        q.queue.configure(max_bytes=1000)


@one_kind
def test_a_limit_holds_at_once(q: QueueFixture) -> None:
    """Q-67: what was there before counts; the oldest go."""
    q.put(*"0123456789")
    q.queue.cancel("8")
    q.put("x", delay_ms=60_000)
    q.queue.configure(ring_bytes=20 * BODY)
    assert (waiting_bytes(q), len(waiting(q))) == (9 * BODY, 9)
    q.queue.configure(ring_bytes=3 * BODY)
    assert waiting(q) == ["6", "7", "9"]


@one_kind
def test_a_ring_of_sorted_jobs(q: QueueFixture) -> None:
    """Q-67, Q-14: those that stand last make room."""
    q.queue.configure(sort="ascending", ring_bytes=3 * BODY)
    for id, key in (("a", 3), ("b", 1), ("c", 2), ("d", 0)):
        q.put(id, sort_key=key)
    assert waiting(q) == ["d", "b", "c"]


@one_kind
def test_what_follows_a_job_goes_in_with_its_ack(ring: QueueFixture) -> None:
    """Q-67, Q-73: where it never fits it is displaced, and the job is settled."""
    consumer = ring.own(1)
    ring.put("a")
    consumer.pull(recall=True)
    with ring.queue.transaction(consumer) as transaction:
        transaction.ack("a")
        transaction.send("t", ["x" * 1000], options=Options(id="b"))
    assert ring.queue.job("a").state() is JobState.DONE
    assert ring.queue.job("b").state() is JobState.DISPLACED
    assert waiting_bytes(ring) == 0


@one_kind
def test_a_large_job_displaces_many_small_ones(q: QueueFixture) -> None:
    """Q-67: of several places, with cancelled ones between them, and no more than has to."""
    q.queue.configure(ring_bytes=130 * BODY)
    q.queue.enqueue_puts([Put(f"{n}", b"x" * BODY) for n in range(100)])
    q.queue.enqueue_puts([Put(f"high {n}", b"x" * BODY, priority=9) for n in range(30)])
    for n in range(0, 100, 3):
        q.queue.cancel(f"{n}")
    q.put("large", padding=104 * BODY, priority=9)
    assert waiting(q) == [*(f"high {n}" for n in range(5, 30)), "large"]
    assert waiting_bytes(q) == 130 * BODY
