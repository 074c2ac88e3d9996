"""Jobs are moved into another queue by hand, once, whatever dies meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, JobMoved, QueueFull, UnknownQueue
from rqueue.model.envelope import Envelope, parse_record
from rqueue.model.job import Delivery, JobState
from rqueue.model.job_filter import JobFilter
from rqueue.protocol.forwarding import forwarding
from rqueue.protocol.result_wait import await_result, move_said
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind
from tests.support.two_queues import second

HOUR = 3_600_000


def origin(job: Delivery) -> dict[str, Any]:
    found: dict[str, Any] = Envelope.decode(job.body).opts["origin"]
    return found


def sound(*queues: QueueFixture) -> None:
    for q in queues:
        assert invariants.of_state(q.look()) == []
        assert q.queue.counts().outgoing == 0


def outcomes(q: QueueFixture) -> list[tuple[str, str]]:
    return [(row["id"], row["outcome"]) for row in q.look().history]


@one_kind
def test_what_is_kept_of_a_job(q: QueueFixture) -> None:
    """Q-69."""
    q.queue.configure(priorities=3)
    q.put("a", priority=9, max_deliveries=7, max_crashes=2, ttl=60, labels={"tenant": 7})
    c = q.join(1)
    c.retry(c.pull()[0], delay=0)
    c.close()
    with second(q) as target:
        assert q.queue.move(target.queue.name, "a", "a", "none") == 1
        (job,) = target.join().pull()
        header, said = job.header, origin(job)
        assert header.level == 5, "the highest of three levels"
        assert (header.max_deliveries, header.max_crashes) == (7, 2)
        assert (header.attempts, header.deliveries) == (0, 0)
        assert 59_000 < header.expires_ms - header.enqueued_ms <= 60_000
        assert Envelope.decode(job.body).opts["labels"] == {"tenant": 7}
        assert (said["outcome"], said["queue"], said["attempts"]) == ("moved", q.queue.name, 1)
        assert outcomes(q)[-1] == ("a", "moved")
        assert q.queue.job("a").state() is JobState.MOVED
        with pytest.raises(JobMoved, match=f"moved to queue '{target.queue.name}'") as moved:
            q.queue.job("a").result(0)
        assert moved.value.to == target.queue.name
        sound(q, target)


@one_kind
def test_who_waits_for_a_result_learns_that_the_job_was_moved(q: QueueFixture) -> None:
    q.put("a")
    execute(q.queue.redis, await_result(q.queue.keys, "a", wait=True))
    with second(q) as target:
        q.queue.move(target.queue.name, "a")
        (said,) = q.queue.redis.lrange(q.queue.keys.result("a"), 0, -1)  # type: ignore[misc]
        assert move_said(parse_record(said), "to") == target.queue.name


@one_kind
def test_held_jobs_stay_with_their_consumers(q: QueueFixture) -> None:
    """A-38."""
    q.put("a", "b")
    c = q.join(1)
    assert ids(c.pull()) == ["a"]
    with second(q) as target:
        assert q.queue.move_all(target.queue.name) == 1
        assert q.queue.move(target.queue.name, "a") == 0
        assert (q.queue.expire("a"), q.queue.reject("a"), q.queue.cancel_all()) == (0, 0, 0)
        assert c.ack("a") and target.listed() == ["b"]
        sound(q, target)


@one_kind
def test_all_that_fit_go_first_ones_first(q: QueueFixture) -> None:
    for n in range(6):
        q.queue.send(f"t{n % 2}", options=q_options(q, f"j{n}"))
    with second(q) as target:
        assert q.queue.move_all(target.queue.name, JobFilter(task="t1"), limit=2) == 2
        assert (target.listed(), q.listed()) == (["j1", "j3"], ["j0", "j2", "j4", "j5"])
        assert q.queue.move_all(target.queue.name) == 4
        assert target.listed() == ["j1", "j3", "j0", "j2", "j4", "j5"]
        sound(q, target)


def q_options(q: QueueFixture, id: str) -> Any:
    return Options(id=id, **q._terms(id))


@one_kind
def test_a_group_keeps_its_order_and_its_turns(q: QueueFixture) -> None:
    """Q-65: where the other queue has groups too."""
    q.put("a1", "a2", "a3", group="a")
    q.put("b1", "b2", group="b")
    with second(q) as plain, second(q, "/groups") as target:
        target.put("x", group="x")
        assert q.queue.move(target.queue.name, "b1") == 1
        sound(q)
        assert q.queue.move_all(target.queue.name) == 4
        c = target.join()
        assert ids(c.pull()) == ["x", "b1", "a1"]
        c.ack("a1")
        assert ids(c.pull()) == ["a2"]
        c.close()
        assert target.queue.move_all(plain.queue.name) == 5
        assert {job.group for job in plain.join().pull()} == {""}
        sound(q, target, plain)


@one_kind
def test_dead_letters_are_moved_where_that_is_asked(q: QueueFixture) -> None:
    """A-38: what was wrong is mended, and they are tried again; those of another queue too."""
    with second(q, "/dead") as dead:
        q.queue.configure(max_deliveries=1, dead_to=dead.queue.name)
        q.put("a")
        for _ in range(3):
            c = q.join()
            c.retry(c.pull()[0], delay=0)
            c.close()
            assert dead.listed() == ["a"]
            assert dead.queue.move_all(q.queue.name) == 1, "its record of its death is no obstacle"
            assert (q.listed(), dead.listed()) == (["a"], [])
        dead.put("b")
        dead.queue.reject("b")
        assert dead.queue.move_all(q.queue.name) == 0
        assert dead.queue.move_all(q.queue.name, dead=True) == 1
        assert q.listed() == ["a", "b"]
        sound(q, dead)


@one_kind
def test_expired_jobs_come_back_too(q: QueueFixture) -> None:
    """Q-62: nothing of them is left in the list where they waited."""
    with second(q) as target:
        q.queue.configure(expired_to=target.queue.name)
        q.put("a", "b", "c", ttl=1)
        move_time(q.queue, 1001)
        q.put("d", ttl=60)
        q.queue.forward()
        assert sorted(target.listed()) == ["a", "b", "c"]
        assert target.queue.move_all(q.queue.name) == 3
        assert sorted(q.listed()) == ["a", "b", "c", "d"]
        sound(q, target)


@one_kind
def test_what_the_other_queue_knows_stays(q: QueueFixture) -> None:
    """A-40: one id in two queues is two jobs."""
    q.put("a", "b", "c")
    with second(q) as target:
        target.put("a", "b")
        c = target.join()
        c.ack(c.pull()[0])
        c.close()
        assert q.queue.move_all(target.queue.name) == 1
        assert (q.listed(), target.listed()) == (["a", "b"], ["b", "c"])


@one_kind
def test_it_has_to_be_another_queue_that_is_there(q: QueueFixture) -> None:
    q.put("a")
    for call in (q.queue.move, q.queue.copy):
        with pytest.raises(UnknownQueue, match="there is no queue 'nowhere': make it before jobs"):
            call("nowhere", "a")
    with pytest.raises(UnknownQueue, match="rqueue configure nowhere --kind plain"):
        q.queue.move_all("nowhere")
    with pytest.raises(ConfigError, match="is the queue itself"):
        q.queue.copy_all(q.queue.name)
    with second(q) as target, pytest.raises(ConfigError, match="limit"):
        q.queue.move_all(target.queue.name, limit=-1)
    assert q.listed() == ["a"]


@one_kind
def test_a_full_queue_gets_them_when_it_has_room(q: QueueFixture) -> None:
    """Q-67: until then they wait in the outbox; copies are refused."""
    q.put("a", "b")
    with second(q, max_jobs=1) as target:
        target.put("x")
        with pytest.raises(QueueFull):
            q.queue.copy_all(target.queue.name)
        assert q.queue.move(target.queue.name, "a") == 1
        assert q.queue.counts().outgoing == 1
        target.queue.cancel("x")
        move_time(q.queue, 5001)
        q.queue.forward()
        assert target.listed() == ["a"]
        sound(q, target)


@one_kind
def test_a_time_to_live_goes_on_where_the_other_queue_can_have_one(q: QueueFixture) -> None:
    q.put("a", ttl=60)
    with second(q, ring=5) as ring:
        assert q.queue.move(ring.queue.name, "a") == 1
        (job,) = ring.join().pull()
        assert job.expires_ms == 0


@one_kind
def test_what_expires_before_it_is_due_expires_there(q: QueueFixture) -> None:
    """Q-63: when it is due."""
    q.put("a", "b", ttl=60)
    c = q.join(1)
    assert c.retry(c.pull()[0], delay=3600)
    c.close()
    with second(q) as target:
        assert q.queue.move_all(target.queue.name) == 2
        assert target.queue.counts().scheduled == 1
        move_time(target.queue, 3_600_001)
        assert target.join().pull() == []
        assert sorted((row["id"], row["outcome"]) for row in target.look().history) == [
            ("a", "expired"),
            ("b", "expired"),
        ]
        sound(q, target)


@one_kind
def test_a_job_is_held_in_the_other_queue_too(q: QueueFixture) -> None:
    """Q-63."""
    q.put("a", delay_ms=1000, hold=True)
    with second(q) as target:
        assert q.queue.move(target.queue.name, "a") == 1
        target.put("b")
        move_time(target.queue, 1001)
        assert ids(target.join().pull()) == ["a", "b"]
        sound(q, target)


@one_kind
def test_a_sorted_job_is_sorted_in_the_other_queue_too(q: QueueFixture) -> None:
    """Q-14."""
    for id, key in (("a", 3), ("b", 1)):
        q.put(id, sort_key=key)
    with second(q) as target:
        target.put("c", sort_key=2)
        assert q.queue.move_all(target.queue.name) == 2
        assert ids(target.join().pull()) == ["b", "c", "a"]
        sound(q, target)


@one_kind
def test_signed_jobs_are_signed_for_the_other_queue(q: QueueFixture, server: EmbeddedRedis) -> None:
    keys = Settings.of(None, url=server.url, signing_keys={"k": "0123456789abcdef"})
    with Queue(q.queue.name, settings=keys) as queue, second(q) as target:
        queue.send("t", options=q_options(q, "a"))
        assert queue.move(target.queue.name, "a") == 1
        (job,) = target.join().pull()
        assert queue.at(target.queue.name).envelope(job).task == "t"


class Death(BaseException):
    """The process that moves jobs dies."""


def dying(queue: Queue, calls: int, answered: bool) -> None:
    """After so many calls this client makes no further one, or loses the answer to that."""
    run = queue._run
    left = calls

    def counted(call: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            if answered:
                run(call)
            raise Death
        return run(call)

    queue._run = counted  # type: ignore[method-assign]


def survived(
    q: QueueFixture,
    there: QueueFixture,
    act: Callable[[Queue], object],
    server: EmbeddedRedis,
    finished: list[str],
) -> int:
    """Let a process die at each of its calls, and another one go on. Returns how many calls."""
    for calls in range(sys.maxsize):
        for answered in (False, True):
            with Queue(q.queue.name, server.url) as queue:
                dying(queue, calls, answered)
                try:
                    act(queue)
                except Death:
                    died = True
                else:
                    died = False
            # what one has taken is given out again after some seconds
            move_time(q.queue, 5001)
            q.queue.forward()
            sound(q, there)
            everywhere = sorted(q.listed() + there.listed())
            assert everywhere == finished, f"after {calls} calls"
            there.queue.move_all(q.queue.name)
            assert sorted(q.listed()) == finished
        if not died:
            return calls
    raise AssertionError


@one_kind
def test_a_death_at_any_call_loses_and_doubles_nothing(
    q: QueueFixture, server: EmbeddedRedis
) -> None:
    """Q-69: there and back again, under the same ids."""
    q.put("a", "b", "c")
    with second(q) as target:
        name = target.queue.name
        target.queue.move_all(q.queue.name)
        assert survived(q, target, lambda one: one.move_all(name), server, ["a", "b", "c"]) > 8


@one_kind
def test_a_sender_that_is_late_brings_nothing_back(q: QueueFixture) -> None:
    """I8: a job that went on meanwhile is not there twice."""
    q.put("a")
    with second(q) as target, second(q, "/third") as third:
        q.queue.move(target.queue.name, "a")
        # on its way back, and one sender is slow
        run = target.queue._run
        target.queue._run = lambda call: _die_at(call, run)  # type: ignore[method-assign]
        with pytest.raises(Death):
            target.queue.move_all(q.queue.name)
        target.queue._run = run  # type: ignore[method-assign]
        slow = forwarding(target.queue.keys)
        call = next(slow)
        call = slow.send(execute(target.queue.redis, call))
        move_time(target.queue, 5001)
        assert target.queue.forward() == 1
        assert q.listed() == ["a"]
        move_time(q.queue, 2)
        assert q.queue.move(third.queue.name, "a") == 1
        # the slow one goes on: what it sends is known, and of a departure before the last one
        while True:
            try:
                call = slow.send(execute(target.queue.redis, call))
            except StopIteration:
                break
        assert (q.listed(), target.listed(), third.listed()) == ([], [], ["a"])
        sound(q, target, third)


def _die_at(call: Any, run: Callable[[Any], Any]) -> Any:
    if call.script == "outgoing_take":
        raise Death
    return run(call)


@one_kind
def test_a_bounded_target_takes_as_many_as_it_has_room_for(q: QueueFixture) -> None:
    """Q-69, Q-67: the first ones; the others wait in the outbox, and come when there is room."""
    q.put("1", "2", "3")
    with second(q) as target:
        target.queue.configure(max_jobs=1)
        assert q.queue.move_all(target.queue.name) == 3
        assert (target.listed(), q.queue.counts().outgoing) == (["1"], 2)
        for id in ("2", "3"):
            assert target.purge() == 1
            move_time(q.queue, 6000)
            assert q.queue.forward() == 1
            assert target.listed() == [id]


@one_kind
def test_what_a_target_in_bytes_never_takes_keeps_no_other(q: QueueFixture) -> None:
    """Q-69, Q-67: it waits in the outbox."""
    q.put("1")
    q.put("large", padding=5000)
    q.put("2", "3")
    with second(q) as target:
        target.queue.configure(max_bytes=2000)
        assert q.queue.move_all(target.queue.name) == 4
        assert (target.listed(), q.queue.counts().outgoing) == (["1", "2", "3"], 1)
