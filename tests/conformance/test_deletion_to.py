"""The jobs of a queue that is deleted go to another one, as a move takes them, or it stays."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import QueueInUse
from rqueue.model.job import Delivery, is_mark
from rqueue.model.job_limit import JobLimit
from rqueue.model.unique_key import UniqueKey
from rqueue.testing import frozen_time, move_time
from tests.conformance.test_moving import Death, dying, sound
from tests.support.queue_fixture import QueueFixture, ids, one_kind
from tests.support.two_queues import second

NOON = 1_900_000_000

FLAVOURS: dict[str, tuple[dict[str, Any], Any]] = {
    "plain": ({}, lambda _random: {}),
    "groups": ({"kind": "groups"}, lambda random: {"group": random.choice("gh")}),
    "limits": ({}, lambda random: {"limit": [JobLimit(random.choice("lm"), 1)]}),
    "keys": ({"kind": "last_value"}, lambda random: {"key": random.choice("klmnop")}),
    "sorted": ({"kind": "sorted"}, lambda random: {"sort_key": random.randint(0, 3)}),
    "hold": ({"hold": True}, lambda random: {"hold": random.choice([True, False])}),
    "shares": ({}, lambda random: {"share": random.choice("st")}),
    "unique": ({}, lambda random: {"unique": UniqueKey(str(random.randint(0, 99)))}),
}


def jobs_of(flavour: str, seed: int) -> list[tuple[str, dict[str, Any]]]:
    random = Random(f"{flavour} {seed}")
    found = []
    for number in range(random.randint(3, 20)):
        options = FLAVOURS[flavour][1](random)
        if random.random() < 0.4:
            options["delay_ms"] = random.randint(1, 5_000_000)
        if flavour != "keys" and random.random() < 0.4:
            options["ttl"] = random.randint(6_000, 60_000)
        if flavour not in ("sorted", "keys") and random.random() < 0.4:
            options["priority"] = random.choice([1, 4, 9])
        found.append((f"j{number:02}", options))
    return found


def standing(q: QueueFixture) -> dict[str, tuple[object, ...]]:
    """Where each job of a queue is, and all that its header says but for its position."""
    found = {}
    for name, value in q.queue.redis.hgetall(q.queue.keys.jobs).items():
        job = Delivery(name, value)
        if not is_mark(value):
            found[job.id] = (str(q.queue.job(job.id).state()), *job.header._replace(position=0))
    return found


def delivered(q: QueueFixture) -> list[str]:
    """The jobs in the order in which one consumer gets them, one at a time."""
    consumer = q.own(jobs=1)
    order = []
    while jobs := consumer.pull():
        order += ids(jobs)
        consumer.ack(*jobs)
    return order


@one_kind
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_they_go_as_moved_ones_do(q: QueueFixture, flavour: str, seed: int) -> None:
    configured = FLAVOURS[flavour][0]
    ends = []
    for way in ("move", "delete"):
        with (
            second(q, f"/{way}-from", **configured) as source,
            second(q, f"/{way}-to", **configured) as target,
            frozen_time(source.queue, NOON) as time,
            frozen_time(target.queue, NOON) as its_time,
        ):
            source.put_all(jobs_of(flavour, seed))
            time.move(1)
            its_time.move(1)
            if way == "move":
                moved: int = source.queue.move_all(target.queue.name)
            else:
                moved = source.queue.delete(jobs_to=target.queue.name)
                assert source.look().jobs == {}
            sound(target)
            there = standing(target)
            its_time.move(5_400)
            ends.append((moved, there, delivered(target)))
    assert ends[0] == ends[1]


def refused(q: QueueFixture, target: QueueFixture, stays: str) -> str:
    """That the deletion is refused for these jobs, before anything is done; why."""
    before = q.look()
    with pytest.raises(QueueInUse) as error:
        q.queue.delete(jobs_to=target.queue.name, consumers=True)
    assert q.look().jobs == before.jobs
    assert stays in error.value.what
    q.put("a new one")  # it is a queue as before
    q.queue.cancel("a new one")
    return error.value.what


@one_kind
def test_what_cannot_go_is_named_and_nothing_is_done(q: QueueFixture) -> None:
    with second(q) as target:
        target.put("known")
        consumer = target.own(jobs=1)
        consumer.ack(*consumer.pull())
        q.put("known", "free")
        assert "the other queue knows" in refused(q, target, "known: ")
        q.queue.cancel("known")
        q.put("dead")
        q.queue.reject("dead")
        assert "would run there" in refused(q, target, "dead: ")
        assert q.queue.delete(jobs_to=target.queue.name, jobs=True) == 2, "free went, dead ended"
        assert target.listed() == ["free"]
        sound(target)


@one_kind
def test_what_waits_for_others_stays_with_them(q: QueueFixture) -> None:
    parent = q.put("parent")
    q.put("child", after=[parent])
    with second(q) as target:
        assert "workflows" in refused(q, target, "1 job of workflows")
        assert target.listed() == []


@one_kind
def test_what_is_met_late_takes_the_deletion_back(
    q: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process gives the target a job of the same id when the deletion has begun."""
    q.put("a", "b", "c")
    with second(q) as target:
        run = q.queue._run

        def late(call: Any) -> Any:
            answer = run(call)
            if getattr(call, "script", "") == "delete":
                monkeypatch.setattr(q.queue, "_run", run)
                target.put("b")
            return answer

        monkeypatch.setattr(q.queue, "_run", late)
        with pytest.raises(QueueInUse, match="2 jobs went there before") as error:
            q.queue.delete(jobs_to=target.queue.name)
        assert "b: the other queue knows a job of this id" in error.value.what
        assert q.listed() == ["b"]
        assert sorted(target.listed()) == ["a", "b", "c"]
        q.put("d")
        sound(q, target)
        target.queue.cancel("b")
        assert q.queue.delete(jobs=True) == 2


@one_kind
def test_a_death_at_any_call_loses_nothing_and_the_next_deletion_goes_on(
    q: QueueFixture, server: EmbeddedRedis
) -> None:
    with second(q) as target:
        name = target.queue.name
        for calls in range(100):
            for answered in (False, True):
                source = QueueFixture(q.queue.at(f"{q.queue.name}/{calls}-{answered}"))
                wanted = [f"{calls}-{answered}-{n}" for n in range(3)]
                source.put(*wanted[:2], priority=4)
                source.put(wanted[2], delay_ms=3_600_000)
                with Queue(source.queue.name, server.url) as queue:
                    dying(queue, calls, answered)
                    try:
                        queue.delete(jobs_to=name)
                        died = False
                    except Death:
                        died = True
                move_time(source.queue, 5001)
                source.queue.delete(jobs_to=name)
                assert standing(target).keys() == set(wanted)
                assert target.queue.counts().scheduled == 1
                assert target.queue.cancel_all() == 3
            if not died:
                assert calls > 6
                return
        raise AssertionError("it never ended")
