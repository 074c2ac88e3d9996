"""A listener hears the states of a job as they change, without polling."""

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import UnknownJob
from rqueue.model.job import JobState
from tests.support.both import AsyncTogether, aoutside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import apull

pytestmark = pytest.mark.each_server


async def listen(handle: AsyncJobHandle[None], timeout: float | None) -> list[str]:
    heard: list[str] = []
    async for state in handle.states(timeout):
        heard.append(str(state))
    return heard


async def test_states_are_heard_to_the_end(
    queue: AsyncQueue, consumer: AsyncConsumer, server: EmbeddedRedis
) -> None:
    """Q-06."""
    await queue.pause()
    handle, other = await queue.send("t"), await queue.send("t")
    async with AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            listening = together.start(listen, handle, None)
            await aoutside(monitor.wait_for, "XREAD")
            await queue.resume()
            first, second = await apull(consumer, 2)
            assert second.id == other.id
            await consumer.ack(second)  # of another job: nothing is heard
            await aoutside(monitor.wait_for, "XREAD")
            await consumer.retry(first, delay=60)
            await aoutside(monitor.wait_for, "XREAD")
            await handle.cancel()
            heard = await listening.result(PATIENCE)
    assert [state for state in heard if state != "held"] == ["ready", "scheduled", "cancelled"]


async def test_what_has_ended_is_heard_at_once(queue: AsyncQueue) -> None:
    handle = await queue.send("t")
    await queue.cancel(handle.id)
    assert await listen(queue.job(handle.id), None) == ["cancelled"]
    with pytest.raises(UnknownJob):
        await listen(queue.job("none"), None)


async def test_the_time_to_listen_ends(queue: AsyncQueue) -> None:
    handle = await queue.send("t")
    assert await listen(handle, 0) == ["ready"]
    assert await listen(handle, 0.05) == ["ready"]
    assert await handle.state() is JobState.READY


async def test_it_goes_on_behind_a_cut_connection(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy, private_server: EmbeddedRedis
) -> None:
    """Nothing is missed meanwhile."""
    handle = await far.send("t")
    async with AsyncTogether() as together:
        with monitoring(private_server.url) as monitor:
            listening = together.start(listen, handle, 30)
            await aoutside(monitor.wait_for, "XREAD")
            proxy.cut()
            await aoutside(monitor.wait_for, "XREAD")
            await near.cancel(handle.id)
            assert await listening.result(PATIENCE) == ["ready", "cancelled"]
