"""Listeners hear that Redis cannot be reached, that a lease ended, and that all is well again."""

from queue import SimpleQueue

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.errors import ConnectionLost, RedisUnavailable, RegistrationLost
from rqueue.model.connection_state import ConnectionState, ConnectionStates
from tests.support.both import aend_lease, aoutside
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy


async def test_a_consumer_s_connection_is_suspended_and_reconnected(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    """C-29: what is held stays held, and what was put meanwhile is seen."""
    heard: list[str] = []
    await near.send("t", [1])
    async with far.consumer(jobs=5, renew=False) as consumer:
        consumer.connection.add_listener(heard.append)
        job = await consumer.receive(PATIENCE)
        assert job is not None
        proxy.refuse()
        with pytest.raises(ConnectionLost):
            await consumer.ack(job)
        sent = await near.send("t", [2])
        proxy.accept()
        again = [await consumer.receive(PATIENCE)]
        assert await consumer.ack(job)
        if again[0] is not None and again[0].id == job.id:
            again = [await consumer.receive(PATIENCE)]
        assert [other.id for other in again if other] == [sent.id]
        assert consumer.connection.state == "reconnected"
    assert heard == ["suspended", "reconnected"]


async def test_a_consumer_that_gets_no_connection_at_first_registers(
    far: AsyncQueue, proxy: Proxy
) -> None:
    """As a call of a queue would: a server that was just replaced is asked anew."""
    proxy.refuse()
    consumer = far.consumer(renew=False)
    consumer.connection.add_listener(lambda state: proxy.accept())
    async with consumer:
        assert consumer.connection.state == "reconnected"


async def test_a_consumer_whose_lease_ended_has_lost_its_connection(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    """C-29, C-38: another one has the job; the late ack changes nothing; it goes on."""
    heard: list[str] = []
    sent = await near.send("t", [1])
    async with far.consumer(jobs=5, renew=False) as consumer:
        consumer.connection.add_listener(heard.append)
        job = await consumer.receive(PATIENCE)
        assert job is not None and job.id == sent.id
        proxy.refuse()
        await aend_lease(near)
        async with near.consumer(jobs=5, renew=False) as other:
            taken = await other.receive(PATIENCE)
            assert taken is not None and taken.id == sent.id
            proxy.accept()
            with pytest.raises(ConnectionLost):
                await consumer.ack(job)
            with pytest.raises(RegistrationLost):
                await consumer.ack(job)
            assert await other.ack(taken)
        later = await near.send("t", [2])
        received = await consumer.receive(PATIENCE)
        assert received is not None and received.id == later.id
    assert heard == ["suspended", "lost", "reconnected"]


async def test_a_queue_s_connection(far: AsyncQueue, proxy: Proxy) -> None:
    """C-29: of a client; its siblings have the same one."""
    heard: list[str] = []
    far.at("other").connection.add_listener(heard.append)
    assert far.connection.state is None
    await far.send("t", [1])
    proxy.refuse()
    with pytest.raises(RedisUnavailable):
        await far.send("t", [2])
    proxy.accept()
    await far.send("t", [3])
    assert heard == ["connected", "suspended", "reconnected"]


async def test_what_is_not_heard_for_longer_than_a_lease_is_lost(
    far: AsyncQueue, proxy: Proxy
) -> None:
    """C-29: nothing but the clock says so."""
    heard: SimpleQueue[str] = SimpleQueue()
    async with far.consumer(lease=0.2, renew=True) as consumer:
        consumer.connection.add_listener(heard.put)
        proxy.refuse()
        assert await aoutside(heard.get, True, PATIENCE) == "suspended"
        assert await aoutside(heard.get, True, PATIENCE) == "lost"
        proxy.accept()
        assert await aoutside(heard.get, True, PATIENCE) == "reconnected"


def test_a_listener_that_fails_holds_up_no_other() -> None:
    heard: list[str] = []
    states = ConnectionStates()

    def broken(state: ConnectionState) -> None:
        raise ValueError(state)

    states.add_listener(broken)
    states.add_listener(heard.append)
    states.works()
    states.works()
    states.remove_listener(broken)
    states.fails(ConnectionLost("gone"))
    states.fails(ValueError("no matter"))
    states.loses()
    states.fails(ConnectionLost("gone"))
    assert heard == ["connected", "suspended", "lost"]
