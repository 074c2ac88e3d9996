"""Jobs that keep the place that they take when they are enqueued, and are not delivered before a
time."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind

HOUR = 3_600_000


def sound(q: QueueFixture) -> None:
    assert invariants.of_state(q.look()) == []


def test_a_held_job_comes_in_its_place_when_its_time_has_come(q: QueueFixture) -> None:
    """Q-63, X-06: later ones overtake it until then; one that is only due stands at the head."""
    q.put("a")
    q.put("held", hold=True, delay_ms=HOUR)
    q.put("b", "c")
    q.put("later", delay_ms=HOUR)
    sound(q)
    c = q.join(2)
    assert ids(c.pull()) == ["a", "b"]
    q.put("d")
    move_time(q.queue, HOUR + 1)
    c.settle(ack=["a", "b"])
    got: list[str] = []
    while jobs := c.pull():
        got += ids(jobs)
        c.settle(ack=jobs)
    assert got == ["later", "held", "c", "d"]
    sound(q)


def test_it_keeps_its_place_behind_what_was_before_it(q: QueueFixture) -> None:
    """It overtakes nobody when its time has come, nor when it comes back."""
    q.put("a", "b")
    q.put("x", "y", hold=True, delay_ms=HOUR)
    q.put("c")
    move_time(q.queue, HOUR + 1)
    assert q.queue.job("x").state() == "scheduled"
    c = q.join(3)
    assert ids(c.pull()) == ["a", "b", "x"]
    assert q.queue.job("y").state() == "ready" and q.queue.counts().ready == 2
    assert sorted(q.listed()) == ["c", "y"]
    c.settle(release=["x", "b"])
    assert ids(c.pull()) == ["b", "x"]
    c.settle(ack=["a"], retry=[])
    assert ids(c.pull()) == ["y"]
    sound(q)


@one_kind
def test_no_list_is_walked_to_a_place_in_its_middle(q: QueueFixture) -> None:
    """H-06: it stands beside the lists, and is merged into them when it is taken."""
    q.put("a", "b", "c")
    q.put("x", hold=True, delay_ms=HOUR)
    q.put("d")
    move_time(q.queue, HOUR + 1)
    c = q.join(1)
    assert ids(c.pull()) == ["a"]
    look = q.look()
    assert look.lists == {"ready:4": ["b", "c", "d"]}
    assert [id for id, *_ in look.ready_heads] == ["x"]
    c.interest(4)
    assert ids(c.pull()) == ["b", "c", "x"]


@one_kind
def test_a_held_job_is_made_ready_cancelled_and_given_another_priority(q: QueueFixture) -> None:
    q.put("x", "y", "z", hold=True, delay_ms=HOUR)
    q.put("a", "b")
    assert q.queue.cancel("x")
    assert q.queue.promote("y") == 1
    assert q.queue.set_priority("z", 9) == 1
    sound(q)
    c = q.join()
    assert ids(c.pull()) == ["y", "a", "b"]
    move_time(q.queue, HOUR + 1)
    assert ids(c.pull()) == ["z"]
    sound(q)


@one_kind
def test_one_whose_time_has_come_is_moved_cancelled_and_purged(q: QueueFixture) -> None:
    q.put("a")
    q.put("w", "x", "y", "z", hold=True, delay_ms=HOUR)
    q.put("b")
    move_time(q.queue, HOUR + 1)
    c = q.join(1)
    assert ids(c.pull()) == ["a"]
    assert q.queue.cancel("x")
    assert q.queue.move_to_front("y") == 1
    assert q.queue.set_priority("w", 5) == 1
    sound(q)
    c.interest(4)
    assert ids(c.pull()) == ["w", "y", "z"]
    c.settle(ack=["a", "w", "y", "z"])
    q.put("v", hold=True, delay_ms=HOUR)
    assert ids(c.pull()) == ["b"]
    move_time(q.queue, HOUR + 1)
    assert q.purge() == 1
    sound(q)


@one_kind
def test_a_held_job_of_a_group_waits_for_its_turn(q: QueueFixture) -> None:
    """And has it before those of its group that were enqueued later and still wait."""
    q.queue.configure(kind="groups")
    q.put("g1", group="g", hold=True, delay_ms=HOUR)
    q.put("g2", "g3", group="g")
    c = q.join()
    assert ids(c.pull()) == ["g2"]
    move_time(q.queue, HOUR + 1)
    assert c.pull() == []
    assert ids(c.settle(ack=["g2"], pull=True)) == ["g1"]
    assert ids(c.settle(ack=["g1"], pull=True)) == ["g3"]
    sound(q)


@one_kind
def test_a_held_job_does_not_expire_before_its_time(q: QueueFixture) -> None:
    """Q-63: as any job that is not due."""
    q.put("held", hold=True, delay_ms=HOUR, ttl=3 * HOUR / 1000)
    q.put("short", hold=True, delay_ms=HOUR, ttl=2 * HOUR / 1000)
    q.put("first", ttl=60)
    move_time(q.queue, HOUR - 5000)
    c = q.join(1)
    assert c.pull() == []
    sound(q)
    c.interest(0)
    move_time(q.queue, 5001)
    assert q.queue.promote("held", "short") == 2
    sound(q)
    move_time(q.queue, HOUR + 1)
    c.interest(1)
    assert ids(c.pull()) == ["held"]
    assert q.queue.job("short").state() == "expired"
    sound(q)


@one_kind
@pytest.mark.parametrize("other", [{"key": "k"}, {"labels": {"x": 1}}])
def test_what_it_does_not_go_with(q: QueueFixture, other: dict[str, object]) -> None:
    """Keys and classes have their own places."""
    q.queue.configure(kind="last_value" if "key" in other else "selectors")
    q.put("a", **other)
    with pytest.raises(ConfigError, match="hold"):
        q.put("b", hold=True, delay_ms=HOUR)
    assert q.listed() == ["a"]


@one_kind
def test_a_queue_that_holds_nothing_again_holds_what_it_held(q: QueueFixture) -> None:
    """The option is asked when a job is enqueued."""
    q.put("a", hold=True, delay_ms=HOUR)
    q.queue.configure(hold=False)
    q.put("b", hold=True, delay_ms=HOUR)
    c = q.join()
    assert ids(c.pull()) == ["b"]
    q.queue.configure(hold=True)
    q.put("c", hold=True, delay_ms=HOUR)
    move_time(q.queue, HOUR + 1)
    assert ids(c.pull()) == ["a", "c"]
    sound(q)


def test_a_signed_job_is_held(server: EmbeddedRedis, queue_name: str) -> None:
    settings = Settings(url=server.url, signing_keys={"k1": "a secret of some length"})
    with Queue(queue_name, settings=settings) as queue:
        queue.send("t", [1], None, Options(hold=True, delay_ms=HOUR))
        move_time(queue, HOUR + 1)
        with queue.consumer(renew=False) as c:
            (job,) = c.pull()
            assert queue.envelope(job).args == [1]
