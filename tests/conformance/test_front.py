"""Jobs that come to the front, and queues in which the last one in is the first one out."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.protocol.commands import Retried
from rqueue.protocol.job_packer import Call
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind

HOUR = 3_600_000


def sound(q: QueueFixture) -> None:
    assert invariants.of_state(q.look()) == []


def drained(q: QueueFixture) -> list[str]:
    c = q.join(2)
    got: list[str] = []
    while jobs := c.pull():
        got += ids(jobs)
        c.settle(ack=jobs)
    return got


def test_a_job_comes_to_the_front_of_its_level(q: QueueFixture) -> None:
    """A-17: before all that waits in it, also what was due, and what came to the front before."""
    q.put("a", "b")
    q.put("high", priority=9)
    q.put("due", delay_ms=HOUR)
    move_time(q.queue, HOUR + 1)
    q.put("first", front=True)
    q.put("second", front=True)
    q.put("c")
    sound(q)
    assert drained(q) == ["high", "second", "first", "due", "a", "b", "c"]


def test_what_comes_back_has_the_place_that_it_had(q: QueueFixture) -> None:
    """X-05: what came to the front before what comes there while it is held; what was delivered
    directly, since nothing waited, has that of its position."""
    c = q.join(1)
    assert c.pull() == []
    q.put("direct", front=True)
    assert ids(c.pull()) == ["direct"]
    q.put("a", "b")
    q.put("f", front=True)
    c.settle(release=["direct"])
    sound(q)
    assert q.listed() == ["f", "direct", "a", "b"]
    assert ids(c.pull()) == ["f"]
    q.put("g", front=True)
    c.settle(retry=[Retried("f", 0, "old", True, b"{}")])
    sound(q)
    assert q.listed() == ["f", "g", "direct", "a", "b"]


def test_one_that_is_due_later_comes_to_the_front_then(q: QueueFixture) -> None:
    """Before others that are due at the same look, and what came to the front while it waited."""
    q.put("a")
    q.put("sooner", delay_ms=HOUR)
    q.put("later", delay_ms=HOUR + 5, front=True)
    q.put("f", front=True)
    assert q.queue.job("later").state() == "scheduled"
    move_time(q.queue, HOUR + 10)
    sound(q)
    assert drained(q) == ["later", "f", "sooner", "a"]
    sound(q)


@one_kind
def test_the_last_one_in_is_the_first_one_out(q: QueueFixture) -> None:
    """Of jobs that are enqueued together too, in each level; what waits keeps its place when the
    queue changes."""
    q.put("old")
    q.queue.configure(lifo=True)
    q.put("a", "b")
    q.put("high", priority=9)
    q.queue.enqueue_many([Call("t", [], None, Options(id=id)) for id in ("c", "d")])
    sound(q)
    assert q.listed() == ["high", "d", "c", "b", "a", "old"]
    q.queue.configure(lifo=False)
    q.put("tail")
    q.put("f", front=True)
    sound(q)
    assert drained(q) == ["high", "f", "d", "c", "b", "a", "old", "tail"]


@one_kind
def test_it_goes_together_with_no_kind_that_has_places_of_its_own(q: QueueFixture) -> None:
    q.queue.configure(kind="groups")
    q.put("g", group="g")
    with pytest.raises(ConfigError, match="front"):
        q.put("f", front=True)
    with pytest.raises(ConfigError, match="front"):
        q.queue.configure(lifo=True)
    sound(q)


def test_a_signed_job_comes_to_the_front(server: EmbeddedRedis, queue_name: str) -> None:
    settings = Settings(url=server.url, signing_keys={"k1": "a secret of some length"})
    with Queue(queue_name, settings=settings) as queue:
        queue.send("t", [1])
        queue.send("t", [2], None, Options(front=True))
        with queue.consumer(renew=False) as c:
            (job,) = c.pull()
            assert queue.envelope(job).args == [2]


def test_moved_before_it_is_due_it_comes_to_the_front_there(
    server: EmbeddedRedis, queue_name: str
) -> None:
    with Queue(queue_name, server.url) as queue, Queue(f"{queue_name}-2", server.url) as target:
        target.send("t", [], None, Options(id="a"))
        queue.send("t", [], None, Options(id="f", front=True, delay_ms=HOUR))
        assert queue.move(target.name, "f") == 1
        move_time(target, HOUR + 1)
        with target.consumer(jobs=2, renew=False) as c:
            assert ids(c.pull()) == ["f", "a"]
