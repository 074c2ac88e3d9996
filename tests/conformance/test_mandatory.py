"""Jobs that go only into a queue that is there (Q-20), and alone."""

from collections.abc import Callable

import pytest

from rqueue import Call, Options
from rqueue.errors import ConfigError, NoConsumer, QueueFull, UnknownQueue
from tests.support.queue_fixture import QueueFixture, ids, one_kind


def test_a_mandatory_job_makes_no_queue(q: QueueFixture) -> None:
    for options in ({}, {"priority": 9}, {"ttl": 5}, {"group": "g"}, {"delay_ms": 5}):
        with pytest.raises(UnknownQueue, match="there is no queue") as refused:
            q.put("A", mandatory=True, **options)
        assert refused.value.queue == q.queue.name
    assert q.look().keys == {}
    q.put("A")
    assert q.put("B", mandatory=True).created
    assert not q.put("A", mandatory=True).created
    assert ids(q.join(5).pull()) == ["A", "B"]


@one_kind
def test_a_queue_that_is_empty_is_there_until_it_is_deleted(q: QueueFixture) -> None:
    q.queue.configure(max_deliveries=3)
    q.put("A", mandatory=True)
    q.queue.delete(jobs=True)
    with pytest.raises(UnknownQueue):
        q.put("A", mandatory=True)
    q.put("A")
    assert q.listed() == ["A"]


@one_kind
def test_a_mandatory_job_may_be_immediate(q: QueueFixture) -> None:
    with pytest.raises(UnknownQueue):
        q.put("A", mandatory=True, immediate=True)
    consumer = q.join(1)
    assert q.put("A", mandatory=True, immediate=True).handed_to == consumer.name
    with pytest.raises(NoConsumer):
        q.put("B", mandatory=True, immediate=True)


@one_kind
def test_a_full_queue_refuses_a_mandatory_job(q: QueueFixture) -> None:
    q.queue.configure(max_jobs=1)
    q.put("A", mandatory=True)
    with pytest.raises(QueueFull):
        q.put("B", mandatory=True)
    assert not q.put("A", mandatory=True).created


def _transaction(q: QueueFixture, call: Call) -> None:
    with q.queue.transaction() as tx:
        tx.send("t", [], None, call.options or Options())


def _put(q: QueueFixture, call: Call) -> None:
    with q.queue.putter() as putter:
        putter.put_call(call)


@pytest.mark.parametrize("name", ["immediate", "mandatory"])
@pytest.mark.parametrize(
    "enqueue", [lambda q, call: q.queue.enqueue_many([call]), _transaction, _put]
)
@one_kind
def test_what_is_refused_alone_is_enqueued_alone(
    q: QueueFixture, enqueue: Callable[[QueueFixture, Call], object], name: str
) -> None:
    with pytest.raises(ConfigError, match=name):
        enqueue(q, Call("t", options=Options(**{name: True})))
    assert q.look().keys == {}
