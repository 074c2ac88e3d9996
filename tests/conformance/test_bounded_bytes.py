"""Bounded queues in bytes: what fits, who waits for room, and what counts."""

from collections.abc import Iterator

import pytest

from rqueue.errors import ConfigError, QueueFull
from rqueue.inspector.inspector import Inspector
from rqueue.protocol import commands
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from rqueue.tasks.unique import Unique
from rqueue.testing import move_time
from tests.support.patience import PATIENCE
from tests.support.producers import KINDS, Producers, producing
from tests.support.queue_fixture import QueueFixture, ids, one_kind

BODY = len(b'["t",[""]]')
"""Bytes of the envelope of a job of `put`, without its padding."""


@pytest.fixture(params=KINDS)
def producers(request: pytest.FixtureRequest, q: QueueFixture) -> Iterator[Producers]:
    with producing(request.param, q) as made:
        yield made


def full(q: QueueFixture, padding: int = 0, **options: object) -> QueueFull:
    """How one more job is refused."""
    with pytest.raises(QueueFull) as caught:
        q.put("more", padding=padding, max_wait=0, **options)
    return caught.value


def waiting_bytes(q: QueueFixture) -> int:
    return int(q.queue.counts().meta.get("waiting_bytes", "0"))


def test_what_does_not_fit_is_refused(q: QueueFixture) -> None:
    """Q-67: up to the last byte, and again once a consumer has taken some."""
    q.queue.configure(max_bytes=5 * BODY + 10)
    q.put("1", "2", "3", "4", "5")
    error = full(q, padding=20)
    assert (error.limit, error.waiting_bytes, error.size) == (0, 5 * BODY, BODY + 20)
    assert str(error) == (
        f"queue '{q.queue.name}' is full: {5 * BODY} of at most {5 * BODY + 10} bytes;"
        f" 1 job of {BODY + 20} bytes did not fit; nothing was stored"
    )
    assert q.listed() == ["1", "2", "3", "4", "5"]
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["1"]
    q.put("6", padding=10)
    assert (waiting_bytes(q), full(q).room) == (5 * BODY + 10, 0)
    consumer.settle(release=["1"])
    assert full(q).waiting_bytes == 6 * BODY + 10


@one_kind
def test_what_never_fits_says_so(q: QueueFixture, producers: Producers) -> None:
    """Q-67: at once, also where producers wait."""
    for overflow in ("reject", "block"):
        q.queue.configure(max_bytes=BODY + 10, overflow=overflow)
        error = full(q, padding=20)
        assert error.never
        assert f"1 job of {BODY + 20} bytes never fits into" in str(error)
        assert f"which takes {BODY + 10} bytes; nothing was stored" in str(error)
    with pytest.raises(QueueFull, match="never fits"):
        q.put("1", padding=20)
    assert q.listed() == []


@one_kind
def test_both_limits_hold(q: QueueFixture) -> None:
    """X-16."""
    q.queue.configure(max_jobs=3, max_bytes=3 * BODY + 30)
    q.put("1", "2", padding=10)
    assert full(q, padding=20).size == BODY + 20
    q.put("3")
    error = full(q)
    assert (error.waiting, error.limit) == (3, 3)
    assert f"3 of at most 3 jobs and {3 * BODY + 20} of at most {3 * BODY + 30} bytes" in str(error)
    q.queue.configure(max_bytes=0)
    assert full(q).limit_bytes == 0
    q.queue.configure(max_jobs=0)
    q.put("4", padding=500)
    q.queue.configure(max_bytes=BODY)
    assert full(q).waiting_bytes == 4 * BODY + 520


@pytest.mark.each_server
@one_kind
def test_all_places_for_waiting_jobs_count(q: QueueFixture) -> None:
    """X-16: levels, groups, the schedule; cancelled, expired and dead ones do not."""
    q.queue.configure(max_bytes=100 * BODY, dead_letters=True)
    handle = q.queue.schedules.set("s", "t", every=60)
    assert handle is not None
    there = waiting_bytes(q)
    q.put("1", padding=1)
    q.put("2", priority=9, padding=2)
    q.put("3", "4", "5", group="g", padding=4)
    q.put("6", delay_ms=60_000, padding=8)
    q.put("7", ttl=5, padding=16)
    q.put("8", delay_ms=120_000, padding=32)
    everything = there + 8 * BODY + 1 + 2 + 12 + 8 + 16 + 32
    assert waiting_bytes(q) == everything
    q.queue.cancel("1")
    q.queue.cancel("4")
    q.queue.cancel("8")
    everything -= 3 * BODY + 1 + 4 + 32
    assert waiting_bytes(q) == everything
    move_time(q.queue, 6000)
    q.renew(q.join(0))
    everything -= BODY + 16
    assert waiting_bytes(q) == everything
    q.queue.promote("6")
    assert waiting_bytes(q) == everything
    consumer = q.join(2)
    assert ids(consumer.pull()) == ["2", "6"]
    everything -= 2 * BODY + 10
    consumer.reject("2", "no")
    consumer.retry("6", delay=30)
    everything += BODY + 8
    assert waiting_bytes(q) == everything
    assert q.requeue("2") == 1
    assert waiting_bytes(q) == everything + BODY + 2
    consumer.close()
    q.purge()
    assert waiting_bytes(q) == 0


def test_held_jobs_count_where_that_is_asked(q: QueueFixture) -> None:
    """X-16."""
    q.queue.configure(max_bytes=3 * BODY, count_held=True)
    consumer = q.join(1)
    q.put("1", "2", "3")
    consumer.pull()
    assert full(q).waiting_bytes == 3 * BODY
    consumer.ack("1")
    q.put("4")
    assert full(q).waiting_bytes == 3 * BODY
    with pytest.raises(ConfigError, match="count_held: cannot change"):
        q.queue.configure(count_held=False)
    assert ids(consumer.pull()) == ["2"]
    consumer.reject("2", "no")
    q.put("5")
    consumer.close()
    assert full(q).waiting_bytes == 3 * BODY


def test_a_limit_counts_what_was_there_before(q: QueueFixture) -> None:
    """X-16: ready, scheduled; not what consumers hold, what is dead or was cancelled."""
    consumer = q.join(2)
    q.put("1", "2")
    consumer.pull()
    consumer.reject("2", "no")
    q.put("3", "4", padding=10)
    q.put("5", delay_ms=60_000)
    q.queue.cancel("4")
    q.queue.configure(max_bytes=1000)
    assert waiting_bytes(q) == 2 * BODY + 10
    consumer.settle(release=["1"])
    assert waiting_bytes(q) == 3 * BODY + 10


@one_kind
def test_producers_wait_in_their_turn(q: QueueFixture, producers: Producers) -> None:
    """Q-67: a large job is not overtaken by small ones behind it, and is woken once it fits."""
    q.queue.configure(max_bytes=4 * BODY + 20, overflow="block", resume=100)
    q.put("1", "2", "3", "4", padding=5)
    large = producers.enqueue_many("5", "6", "8", "9")  # 20 bytes, a 1st job makes room for 15
    producers.wait_blocked()
    small = producers.enqueue("7")
    producers.wait_blocked()
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["1"]
    assert not q.look().scores("grants"), "there is room for the small one, and it came later"
    assert ids(consumer.settle(ack=["1"], pull=True)) == ["2"]
    assert large.result(PATIENCE) == "9"
    assert small.result(PATIENCE) == "7"
    assert q.listed()[:2] == ["3", "4"]


@one_kind
def test_producers_go_on_at_the_mark(q: QueueFixture, producers: Producers) -> None:
    """Q-67: 80 percent of the bytes, as of the jobs."""
    q.queue.configure(max_bytes=10 * BODY, overflow="block")
    q.put(*"0123456789")
    one = producers.enqueue("x")
    producers.wait_blocked()
    consumer = q.join(1)
    consumer.pull()
    assert not q.look().scores("grants")
    consumer.settle(ack=["0"], pull=True)
    assert one.result(PATIENCE) == "x"


@one_kind
def test_a_batch_that_is_larger_than_the_queue_goes_in_pieces(
    q: QueueFixture, producers: Producers
) -> None:
    """Q-67: where producers wait, as long as it takes."""
    q.queue.configure(max_bytes=6 * BODY, overflow="block")
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
def test_background_puts_store_what_fits(q: QueueFixture) -> None:
    """Q-67, C-10."""
    q.queue.configure(max_bytes=3 * BODY)
    failed: list[str] = []
    with q.queue.putter(on_error=lambda _error, puts: failed.extend(put.id for put in puts)) as put:
        for id in "12345":
            put.put_call(Call("t", [""], None, Options(id=id)))
        put.flush(PATIENCE)
    assert q.listed() == ["1", "2", "3"]
    assert failed == ["4", "5"]


@one_kind
def test_one_that_is_displaced_makes_room_in_the_same_step(q: QueueFixture) -> None:
    """Q-67, Q-15: a new value is as large as the old one's room, and no larger."""
    q.queue.configure(max_bytes=2 * BODY + 10, kind="last_value")
    q.queue.configure(max_bytes=2 * BODY + 10)
    q.put("1", key="a", padding=10)
    q.put("2", key="b")
    q.put("3", key="a", padding=5)
    assert waiting_bytes(q) == 2 * BODY + 5
    assert full(q, padding=11, key="a").waiting_bytes == 2 * BODY + 5
    assert q.listed() == ["2", "3"]


@one_kind
def test_a_unique_job_that_waits_gets_larger(q: QueueFixture) -> None:
    """Q-67: the envelope that replaces its own counts from then on."""
    q.queue.configure(max_bytes=100 * BODY)
    q.put("1", unique=Unique(key="k", on_conflict="replace"))
    before = waiting_bytes(q)
    q.put("2", unique=Unique(key="k", on_conflict="replace"), padding=40)
    assert waiting_bytes(q) == before + 40


@one_kind
def test_what_follows_a_job_is_let_in_with_its_ack(q: QueueFixture) -> None:
    """Q-67, Q-73: a job that is done has to be settled; other transactions are refused."""
    q.queue.configure(max_bytes=BODY)
    consumer = q.own(1)
    q.put("1")
    consumer.pull(recall=True)
    with q.queue.transaction(consumer) as transaction:
        transaction.ack("1")
        transaction.send("t", ["x" * 100], options=Options(id="2"))
    assert waiting_bytes(q) == BODY + 100
    with pytest.raises(QueueFull), q.queue.transaction() as alone:
        alone.send("t")


@one_kind
def test_known_jobs_are_known(q: QueueFixture) -> None:
    """Q-67, H-18: an enqueue that is sent again changes nothing, and counts nothing twice."""
    q.queue.configure(max_bytes=2 * BODY)
    q.put("1", "2")
    assert not q.put("1").created
    puts = [commands.Put("1", b"[]"), commands.Put("2", b"[]")]
    assert q.queue.enqueue_puts(puts).known == (0, 1)
    assert waiting_bytes(q) == 2 * BODY


@one_kind
def test_people_see_bytes(q: QueueFixture) -> None:
    """Q-67."""
    q.queue.configure(max_bytes=3 * BODY, max_jobs=10)
    q.put("1", "2", "3")
    with Inspector(settings=q.queue.settings) as inspector:
        bound = inspector.queue(q.queue.name).bounded
    assert bound is not None
    assert (bound.bytes, bound.limit_bytes, bound.full) == (3 * BODY, 3 * BODY, True)
    calls = [Call("t", ["x"], None, None)] * 2
    with pytest.raises(QueueFull, match=r"2 jobs of \d+ bytes did not fit"):
        q.queue.enqueue_many(calls)
