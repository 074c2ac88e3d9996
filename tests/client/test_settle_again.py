"""A settle whose call was lost, and said again: it counts as if it had been said once (H-18)."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConnectionLost
from rqueue.protocol.credit import WindowCredit
from tests.support.queue_fixture import QueueFixture


@pytest.fixture
def q(server: EmbeddedRedis, queue_name: str) -> Iterator[QueueFixture]:
    with Queue(queue_name, server.url) as queue:
        q = QueueFixture(queue)
        yield q
        q.close()


def _cut(consumer: Consumer) -> None:
    consumer._connection.socket.shutdown(socket.SHUT_RDWR)


def _lose_an_ack(consumer: Consumer, *ids: str) -> None:
    _cut(consumer)
    with pytest.raises(ConnectionLost):
        consumer.settle(ack=ids)


def test_its_bytes_are_credit_again(q: QueueFixture) -> None:
    """Q-50: named by their ids, as where the deliveries are not there any more."""
    q.put("A", "B", "C", "D", padding=100)
    consumer = q.join(10, bytes=2 * (100 + 64))
    assert len(consumer.pull()) == 2
    _lose_an_ack(consumer, "A", "B")
    assert consumer.held == 2
    consumer.settle(ack=["A", "B"])
    assert q.look().consumers[consumer.name]["held_bytes"] == "0"
    assert (consumer.held, len(consumer.pull())) == (0, 2)


def test_its_history_is_whole(q: QueueFixture) -> None:
    q.put("A")
    consumer = q.join(1)
    (job,) = consumer.pull()
    _lose_an_ack(consumer, "A")
    assert consumer.ack(job)
    (row,) = q.look().history
    assert (row["id"], row["task"], row["outcome"]) == ("A", "t", "ack")


def test_a_manager_of_credit_counts_it_once(q: QueueFixture) -> None:
    q.put("A", "B")
    consumer = q.join(credit=WindowCredit(1), jobs=1)
    consumer.pull()
    _lose_an_ack(consumer, "A")
    consumer.settle(ack=["A"])
    assert [job.id for job in consumer.pull()] == ["B"]
    assert consumer.held == 1


def test_receive_goes_on_with_what_came_with_the_lost_reply(q: QueueFixture) -> None:
    """The reply of a settle that pulled is lost: what it brought is asked for, not waited for."""
    q.put("A", "B")
    consumer = q.join(1)
    first = consumer.receive(0)
    assert first is not None
    connection = consumer._connection
    framing: Any = connection._framing

    def lost(command: Any) -> object:
        connection._framing = framing
        framing.ask(command)
        _cut(consumer)
        return framing.read()

    connection._framing = SimpleNamespace(ask=lost)
    with pytest.raises(ConnectionLost):
        consumer.settle(ack=[first], pull=True)
    second = consumer.receive(0)
    assert second is not None and second.id == "B"
