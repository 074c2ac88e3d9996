"""A job's times count from its enqueue, whatever way it takes to its queue and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from rqueue.model.job import Delivery
from rqueue.tasks.options import Options
from rqueue.testing import FrozenTime, frozen_time
from tests.support.queue_fixture import QueueFixture, ids, one_kind
from tests.support.two_queues import second

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)
MINUTE = 60_000

Way = Callable[[QueueFixture, QueueFixture, Options], None]


def by_a_transaction(source: QueueFixture, target: QueueFixture, options: Options) -> None:
    with source.queue.transaction() as transaction:
        transaction.at(target.queue).send("t", options=options)


def by_a_move(source: QueueFixture, target: QueueFixture, options: Options) -> None:
    source.queue.send("t", options=options)
    source.queue.move(target.queue.name, str(options.id))


def by_a_move_of_all(source: QueueFixture, target: QueueFixture, options: Options) -> None:
    source.queue.send("t", options=options)
    source.queue.move_all(target.queue.name)


WAYS: dict[str, Way] = {
    "transaction": by_a_transaction,
    "move": by_a_move,
    "move all": by_a_move_of_all,
}
TIMES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "delay": {"delay_ms": 90 * MINUTE},
    "delay that is over": {"delay_ms": MINUTE},
    "time": {"at_ms": NOON_MS + 90 * MINUTE},
    "ttl": {"ttl": 7200},
    "ttl that is over": {"ttl": 60},
    "delay and ttl": {"delay_ms": 90 * MINUTE, "ttl": 7200},
    "hold": {"hold": True, "delay_ms": 90 * MINUTE},
    "hold that is over": {"hold": True, "delay_ms": MINUTE},
}


@contextmanager
def clocks(*queues: QueueFixture) -> Iterator[Callable[[float], None]]:
    """Moves the clocks of some queues together."""
    times: list[FrozenTime] = []
    froze = [frozen_time(q.queue, NOON) for q in queues]
    for one in froze:
        times.append(one.__enter__())

    def move(seconds: float) -> None:
        for time in times:
            time.move(seconds)

    try:
        yield move
    finally:
        for one in froze:
            one.__exit__(None, None, None)


def value_of(q: QueueFixture, id: str) -> Delivery:
    value = q.queue.redis.hget(q.queue.keys.jobs, id)
    assert isinstance(value, bytes)
    return Delivery(id, value)


@one_kind
@pytest.mark.parametrize("away", [6, 3600])
@pytest.mark.parametrize("waits", [False, True], ids=["nobody waits", "a consumer waits"])
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("way", WAYS)
def test_times_count_from_the_enqueue(
    q: QueueFixture, way: str, times: str, waits: bool, away: int
) -> None:
    said = TIMES[times]
    with second(q, max_jobs=1) as target, clocks(q, target) as move:
        target.put("first")  # the queue is full: the job stays in the outbox
        WAYS[way](q, target, Options(id="x", **said))
        move(away)
        target.queue.configure(max_jobs=0)
        consumer = target.own(jobs=9)
        consumer.ack(*consumer.pull())
        if not waits:
            consumer.close()
        q.queue.forward()
        due = said.get("at_ms", NOON_MS + said["delay_ms"] if "delay_ms" in said else 0)
        ends = NOON_MS + round(said["ttl"] * 1000) if "ttl" in said else 0
        now = NOON_MS + 1000 * away
        if not waits and (not ends or now <= ends):
            header = value_of(target, "x").header
            assert header.enqueued_ms == NOON_MS
            assert header.expires_ms == ends
            assert (header.due_ms or now) == max(due, now) or header.due_ms == due
        consumer = consumer if waits else target.own(jobs=9)
        delivered = bool(consumer.pull())
        assert delivered == (due <= now and (not ends or now <= ends))
        if ends and ends < now:
            assert target.queue.job("x").state() == "expired"
        elif not delivered:
            move((due - now) / 1000 - 1)
            assert ids(consumer.pull()) == []
            move(1)
            (job,) = consumer.pull()
            consumer.ack(job)  # before the clock goes back


@one_kind
@pytest.mark.parametrize("away", [6, 3600])
def test_the_time_to_live_of_a_queue_counts_from_the_departure(q: QueueFixture, away: int) -> None:
    """Of a dead letter too, which leaves its own time to live behind."""
    with second(q, ttl=600, max_jobs=1) as target, clocks(q, target) as move:
        target.put("first", ttl=7200)
        q.queue.configure(dead_to=target.queue.name)
        q.put("x", ttl=5)
        q.queue.reject("x")
        with q.queue.transaction() as transaction:
            transaction.at(target.queue).send("t", options=Options(id="y"))
        move(away)
        target.queue.configure(max_jobs=0)
        q.queue.forward()
        assert ids(target.own(jobs=9).pull()) == (["first"] if away > 600 else ["first", "x", "y"])


@one_kind
def test_what_is_moved_at_the_end_of_its_time_is_not_delivered(q: QueueFixture) -> None:
    with second(q) as target, clocks(q, target) as move:
        q.put("x", ttl=1)
        move(2)
        consumer = target.own(jobs=9)
        assert consumer.pull() == []
        assert q.queue.move(target.queue.name, "x") == 1
        assert consumer.pull() == []
        assert target.queue.job("x").state() == "expired"


@one_kind
def test_a_long_move_shortens_the_times_of_its_last_jobs(
    q: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rqueue.client._sync import job_selection

    monkeypatch.setattr(job_selection, "WINDOW", 1)
    with second(q) as target, clocks(q, target) as move:
        q.put("a", "b", ttl=3600)
        run = q.queue._run

        def slow(call: Any) -> Any:
            answer = run(call)
            if call.script == "outgoing_done":
                move(60)
            return answer

        monkeypatch.setattr(q.queue, "_run", slow)
        assert q.queue.move_all(target.queue.name) == 2
        for name in "ab":
            assert value_of(target, name).header.expires_ms == NOON_MS + 3_600_000
