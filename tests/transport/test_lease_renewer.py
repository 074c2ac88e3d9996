"""Leases of consumers of one's own: one renewal that fails must not cost one."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic

import pytest
import redis

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisUnavailable
from rqueue.protocol import scripts
from rqueue.protocol.commands.consumers import Renewed
from rqueue.transport.lease_renewer import RenewalPace
from tests.soak.servers import wait_for
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.support.proxy import Proxy

LEASE_S = 6.0
INTERVAL_S = LEASE_S * 0.3


def failed(caplog: pytest.LogCaptureFixture) -> bool:
    return "cannot renew leases" in caplog.text


def test_a_renewal_that_failed_is_repeated_soon(
    proxy: Proxy, private_server: EmbeddedRedis, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rqueue")
    with Queue(queue_name, proxy.url) as queue, queue.consumer(lease=LEASE_S) as consumer:
        proxy.refuse()
        wait_for(lambda: failed(caplog))
        with monitoring(private_server.url) as monitor:
            proxy.accept()
            began = monotonic()
            monitor.wait_for(scripts.script("renew").sha, consumer.name)
            assert monotonic() - began < INTERVAL_S / 2


def test_an_async_renewal_that_failed_is_repeated_soon(
    proxy: Proxy, private_server: EmbeddedRedis, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rqueue")

    async def body() -> float:
        async with (
            AsyncQueue(queue_name, proxy.url) as queue,
            queue.consumer(lease=LEASE_S) as consumer,
        ):
            proxy.refuse()
            await asyncio.to_thread(wait_for, lambda: failed(caplog))
            with monitoring(private_server.url) as monitor:
                proxy.accept()
                began = monotonic()
                renew = scripts.script("renew").sha
                await asyncio.to_thread(monitor.wait_for, renew, consumer.name)
                return monotonic() - began

    assert asyncio.run(body()) < INTERVAL_S / 2


def listeners(server: EmbeddedRedis) -> set[str]:
    """Connections that wait for wake-ups."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        return {one["id"] for one in client.client_list() if one["cmd"] == "blpop"}


@pytest.mark.parametrize("kind", ["sync", "asyncio"])
def test_a_renewal_that_finds_no_server_doubts_the_one_that_is_listened_to(
    kind: str,
    proxy: Proxy,
    private_server: EmbeddedRedis,
    queue_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its connection stays open while no other can be made: as with a primary that hangs while
    the Sentinels name none."""
    caplog.set_level(logging.WARNING, "rqueue")

    def receive() -> object:
        with Queue(queue_name, proxy.url) as queue, queue.consumer(lease=LEASE_S) as consumer:
            while True:
                with suppress(RedisUnavailable):
                    return consumer.receive(2 * PATIENCE)

    async def areceive() -> object:
        async with (
            AsyncQueue(queue_name, proxy.url) as queue,
            queue.consumer(lease=LEASE_S) as consumer,
        ):
            while True:
                with suppress(RedisUnavailable):
                    return await consumer.receive(2 * PATIENCE)

    with ThreadPoolExecutor(1) as pool, Queue(queue_name, private_server.url) as queue:
        found = pool.submit(receive if kind == "sync" else lambda: asyncio.run(areceive()))
        wait_for(lambda: bool(listeners(private_server)))
        before = listeners(private_server)
        proxy.lead_to(("127.0.0.1", free_port()))
        wait_for(lambda: failed(caplog))
        proxy.lead_to(private_server.url.removeprefix("unix://"))
        try:
            wait_for(lambda: bool(listeners(private_server) - before))
        finally:
            queue.send("t")
        assert found.result(PATIENCE)


def test_the_pace_of_renewals() -> None:
    pace = RenewalPace(30_000)
    assert (pace.interval, pace.answer_within) == (9.0, 9.0)
    pauses = [pace.failed() for _ in range(12)]
    assert pace.failing
    assert pauses[0] <= 0.05 and 0.5 <= pauses[-1] <= 1.0
    assert pace.answered(Renewed(0, [], 0, True)) == 0
    assert pace.answered(Renewed(0, [], 0, False)) == 9.0
    assert not pace.failing and pace.failed() <= 0.05
    short = RenewalPace(300)
    assert 3 * short.interval < 0.3, "the third try comes before the lease ends"
    assert all(short.failed() <= short.interval / 5 for _ in range(12)), "a small part of a lease"
