"""Calls that change a job which waits: replace, debounce, throttle."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError
from rqueue.protocol.job_packer import Call
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.unique import Debounce, Throttle, Unique
from rqueue.testing import FrozenTime, frozen_time
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind
from tests.support.two_queues import second

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
REPLACE = Unique(key="k", on_conflict="replace")
DEBOUNCE = Debounce(5, key="k", max_wait=12)
THROTTLE = Throttle("10s", key="k")

pytestmark = one_kind


@pytest.fixture
def time(q: QueueFixture) -> Iterator[FrozenTime]:
    with frozen_time(q.queue, START) as frozen:
        yield frozen
    assert invariants.of_state(q.look()) == []


def call(q: QueueFixture, id: str, unique: Unique, **options: Any) -> tuple[str, str]:
    """A call with this number; the id and the conflict that are answered."""
    handle = q.queue.send("t", [id], options=Options(id=id, unique=unique, **options))
    assert handle.created == (not handle.conflict)
    return handle.id, handle.conflict


def due_in(q: QueueFixture) -> list[tuple[str, float]]:
    """The scheduled jobs, and in how many seconds each is due."""
    look = q.look()
    now = int(look.meta["clock"].removeprefix("@"))
    return [(id_, (due - now) / 1000) for id_, due, *_ in look.scheduled]


def ran(q: QueueFixture, consumer: Any) -> list[tuple[str, str]]:
    """The jobs that are pulled, and with which arguments."""
    return [(job.id, q.queue.envelope(job).args[0]) for job in consumer.pull()]


def test_a_job_that_waits_gets_the_newest_arguments(q: QueueFixture, time: FrozenTime) -> None:
    q.put("0")
    call(q, "1", REPLACE, priority=7)
    q.put("2", priority=7)
    assert call(q, "3", REPLACE) == ("1", "ready")
    assert call(q, "4", REPLACE) == ("1", "ready")
    c = q.join(1)
    assert ran(q, c) == [("1", "4")], "in its place, with its priority"
    assert call(q, "5", REPLACE) == ("5", ""), "what is taken gets nothing new"
    c.settle(release=["1"])
    assert ran(q, c) == [("1", "4")]


def test_what_is_to_be_tried_again_gets_them_too(q: QueueFixture, time: FrozenTime) -> None:
    call(q, "1", REPLACE)
    c = q.join()
    c.retry(*c.pull(), delay=60.0)
    assert call(q, "2", REPLACE) == ("1", "scheduled")
    assert call(q, "3", Debounce(5, key="k")) == ("1", "scheduled"), "its time is the retry's"
    assert due_in(q) == [("1", 60)]
    time.move(60)
    (job,) = c.pull()
    assert (job.header.attempts, q.queue.envelope(job).args) == (1, ["3"])


def test_of_a_batch_and_of_a_transaction_the_last_one_counts(
    q: QueueFixture, time: FrozenTime
) -> None:
    calls = [Call("t", [n], options=Options(id=n, unique=REPLACE)) for n in "12"]
    assert [handle.id for handle in q.queue.enqueue_many(calls)] == ["1", "1"]
    with q.queue.transaction() as t:
        again = t.send("t", ["3"], options=Options(unique=REPLACE))
        t.send("t", ["4"], options=Options(id="4"))
    assert (again.id, again.conflict) == ("1", "ready")
    assert ran(q, q.join()) == [("1", "3"), ("4", "4")]


def test_a_refused_enqueue_replaces_nothing(q: QueueFixture, time: FrozenTime) -> None:
    call(q, "1", REPLACE)
    q.queue.configure(max_jobs=1)
    before = q.look().jobs
    calls = [Call("t", ["2"], options=Options(unique=REPLACE)), Call("t", ["3"])]
    with pytest.raises(Exception, match="full"):
        q.queue.enqueue_many(calls)
    assert q.look().jobs == before
    assert call(q, "4", REPLACE) == ("1", "ready"), "which needs no room"


def test_a_consumer_that_had_no_room_for_the_job_looks_again(
    q: QueueFixture, time: FrozenTime
) -> None:
    c = q.join(5, bytes=1000)
    q.put("0", padding=600)
    q.queue.send("t", ["x" * 900], options=Options(id="1", unique=REPLACE))
    assert ids(c.pull()) == ["0"]
    q.unread(c)
    call(q, "2", REPLACE)
    assert ids(c.pull()) == ["1"]


def test_each_call_puts_a_debounced_job_off(q: QueueFixture, time: FrozenTime) -> None:
    assert call(q, "1", DEBOUNCE) == ("1", "")
    c = q.join()
    assert not c.pull()
    time.move(4)
    assert call(q, "2", DEBOUNCE) == ("1", "scheduled")
    assert due_in(q) == [("1", 5)]
    time.move(4)
    assert not c.pull(), "it was put off"
    call(q, "3", DEBOUNCE)
    assert due_in(q) == [("1", 4)], "twelve seconds from the first call at the latest"
    time.move(4)
    assert ran(q, c) == [("1", "3")]
    assert call(q, "4", DEBOUNCE) == ("4", "")
    assert due_in(q) == [("4", 5)]


def test_a_debounced_job_that_is_due_is_put_off_no_more(q: QueueFixture, time: FrozenTime) -> None:
    call(q, "1", DEBOUNCE)
    time.move(12)
    assert call(q, "2", DEBOUNCE) == ("1", "ready")
    assert ran(q, q.join()) == [("1", "2")]


def test_a_shorter_wait_wakes_who_watches(q: QueueFixture, time: FrozenTime) -> None:
    call(q, "1", Debounce(60, key="k"))
    c = q.join()
    assert not c.pull() and c.timer_ms == 60_000
    call(q, "2", DEBOUNCE)
    assert q.unread(c) == [b"w"]
    assert not c.pull() and c.timer_ms == 5000


def test_one_job_begins_in_each_period(q: QueueFixture, time: FrozenTime) -> None:
    assert call(q, "1", THROTTLE) == ("1", "")
    assert call(q, "2", THROTTLE) == ("1", "ready"), "the first one did not begin yet"
    c = q.join()
    assert ran(q, c) == [("1", "2")]
    time.move(4)
    assert call(q, "3", THROTTLE) == ("3", ""), "it follows"
    assert due_in(q) == [("3", 6)]
    c.ack("1")
    assert call(q, "4", THROTTLE) == ("3", "scheduled")
    time.move(6)
    assert ran(q, c) == [("3", "4")]
    c.ack("3")
    assert call(q, "5", THROTTLE) == ("5", "")
    assert due_in(q) == [("5", 10)]
    time.move(10)
    assert ran(q, c) == [("5", "5")]
    time.move(11)
    assert call(q, "6", THROTTLE) == ("6", ""), "however long that one runs"
    assert ran(q, c) == [("6", "6")]
    c.settle(ack=["5", "6"])
    time.move(11)
    q.renew()
    assert not {"unique", "periods"} & q.look().keys.keys()


def test_a_period_is_that_of_a_job_that_is_not_given_up(q: QueueFixture, time: FrozenTime) -> None:
    call(q, "1", THROTTLE)
    q.queue.cancel("1")
    assert call(q, "2", THROTTLE) == ("2", "")
    assert due_in(q) == []


def test_a_batch_is_throttled_in_itself(q: QueueFixture, time: FrozenTime) -> None:
    c = q.join(1)
    call(q, "1", THROTTLE)
    assert ran(q, c) == [("1", "1")]
    other = Throttle("10s", key="other")
    unique = {"2": None, "3": THROTTLE, "4": THROTTLE, "5": other, "6": None}
    calls = [Call("t", [n], options=Options(id=n, unique=its)) for n, its in unique.items()]
    assert [handle.id for handle in q.queue.enqueue_many(calls)] == ["2", "3", "3", "5", "6"]
    assert due_in(q) == [("3", 10)]
    assert ran(q, q.join()) == [("2", "2"), ("5", "5"), ("6", "6")]
    time.move(10)
    assert ran(q, q.join()) == [("3", "4")]


def test_a_moved_one_is_still_put_off(q: QueueFixture, time: FrozenTime) -> None:
    call(q, "1", DEBOUNCE)
    with second(q) as other, frozen_time(other.queue, START):
        assert q.queue.move_all(other.queue.name) == 1
        assert call(other, "2", DEBOUNCE) == ("1", "scheduled")


def test_labels_stay_in_a_queue_with_selectors(q: QueueFixture, time: FrozenTime) -> None:
    q.queue.configure(kind="selectors")
    call(q, "1", REPLACE, labels={"x": 1})
    with pytest.raises(ConfigError, match="labels"):
        call(q, "2", REPLACE, labels={"x": 2})
    assert call(q, "3", REPLACE, labels={"x": 1}) == ("1", "ready")
    assert ran(q, q.join(select="x = 1")) == [("1", "3")]


def test_what_is_refused(q: QueueFixture) -> None:
    for wrong in (
        lambda: Unique(on_conflict="replace", until="end"),
        lambda: Unique(on_conflict="replace", until="1h"),
        lambda: Debounce(5, max_wait=4),
        lambda: Debounce(0),
        lambda: Throttle("never"),
        lambda: call(q, "1", DEBOUNCE, delay_ms=5),
        lambda: call(q, "1", THROTTLE, at_ms=1_795_348_800_000),
        lambda: q.queue.schedules.set("s", task(name="a", registry=Registry(), unique=DEBOUNCE)(
            lambda: None), every=60),
        lambda: task(name="b", registry=Registry(), every="1m", unique=THROTTLE)(lambda: None),
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            wrong()
    with (
        Queue(q.queue.name, redis=q.queue.redis, signing_keys={"a": "x" * 16}) as signed,
        pytest.raises(ConfigError, match="signed"),
    ):
        signed.send("t", options=Options(unique=REPLACE))
