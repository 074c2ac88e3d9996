"""Curator's id queue. In rqueue one id is one job."""

import random

from tests.support.queue_fixture import QueueFixture, every_kind, ids


@every_kind
def test_CID_01_a_job_that_is_consumed_is_not_removed(q: QueueFixture, kind: str) -> None:
    """C-25, C-36."""
    q.put("A")
    consumer = q.join(1)
    consumer.pull()
    assert not q.queue.cancel("A", held=False)
    assert consumer.ack("A")


@every_kind
def test_CID_02_ids_have_no_say_in_the_order(q: QueueFixture, kind: str) -> None:
    """C-25."""
    names = [str(random.random()) for _ in range(100)]
    q.put(*names)
    assert ids(q.join().pull()) == names


@every_kind
def test_CID_04_a_job_is_cancelled_once(q: QueueFixture, kind: str) -> None:
    """C-25: an id that is taken is no second job."""
    q.put("x", "y")
    assert not q.put("x").created
    assert [bool(q.queue.cancel(id)) for id in ("x", "x", "zz")] == [True, False, False]
    assert ids(q.join().pull()) == ["y"]
