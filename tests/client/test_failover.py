"""An address that leads to another server from now on: nobody stays behind on the old one."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import redis

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisReadOnly
from rqueue.inspector import Inspector
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.result_waits import LONGER_THAN_A_CALL_TRIES_S, WAITS, Waits
from tests.workers.children import WorkerFixture, eventually


class Switch:
    """A name that leads to one of two servers. After `over` the old one is up, and read-only; who
    has a connection to it keeps it."""

    def __init__(self, old: EmbeddedRedis, new: EmbeddedRedis) -> None:
        self.old, self.new = _address(old), _address(new)
        self._client = redis.Redis.from_url(old.url)
        self.new_url = new.url
        self.proxy = Proxy(self.old)
        self.url = self.proxy.url

    def over(self) -> None:
        self.lead()
        self.demote()

    def lead(self) -> None:
        self.proxy.lead_to(self.new)

    def demote(self) -> None:
        self._client.execute_command("REPLICAOF", *map(str, self.new))

    def close(self) -> None:
        self._client.close()
        self.proxy.close()


def _address(server: EmbeddedRedis) -> tuple[str, int]:
    assert server.tcp_url
    return "127.0.0.1", int(server.tcp_url.rpartition(":")[2].partition("/")[0])


@pytest.fixture
def switch(make_server: Callable[..., EmbeddedRedis]) -> Iterator[Switch]:
    made = Switch(make_server(port=0), make_server(port=0))
    yield made
    made.close()


@pytest.mark.each_server
def test_a_client_finds_the_new_primary(switch: Switch, queue_name: str) -> None:
    with Queue(queue_name, switch.url) as queue:
        queue.send("t")
        switch.over()
        assert queue.send("t").created
        assert queue.counts().ready == 1


def test_a_batch_under_way_finds_the_new_primary(switch: Switch, queue_name: str) -> None:
    from rqueue.protocol.job_packer import Call

    with Queue(queue_name, switch.url) as queue:
        queue.enqueue_many([Call("t")])
        switch.over()
        queue.enqueue_many(Call("t") for _ in range(600))
        assert queue.counts().ready == 600


def test_an_asyncio_client_finds_the_new_primary(switch: Switch, queue_name: str) -> None:
    async def work() -> None:
        async with AsyncQueue(queue_name, switch.url) as queue:
            await queue.send("t")
            await asyncio.to_thread(switch.over)
            assert (await queue.send("t")).created
            assert (await queue.counts()).ready == 1

    asyncio.run(work())


def test_background_puts_find_the_new_primary(switch: Switch, queue_name: str) -> None:
    with Queue(queue_name, switch.url) as queue, queue.putter() as putter:
        putter.put("t")
        assert putter.flush(10)
        switch.over()
        putter.put("t")
        assert putter.flush(10)
        assert queue.counts().ready == 1


def test_background_puts_of_asyncio_find_the_new_primary(switch: Switch, queue_name: str) -> None:
    async def work() -> None:
        async with AsyncQueue(queue_name, switch.url) as queue, queue.putter() as putter:
            await putter.put("t")
            assert await putter.flush(10)
            await asyncio.to_thread(switch.over)
            await putter.put("t")
            assert await putter.flush(10)
            assert (await queue.counts()).ready == 1

    asyncio.run(work())


def test_an_inspector_finds_the_new_primary(switch: Switch, queue_name: str) -> None:
    with Inspector(switch.url) as inspector:
        execute(inspector.redis, commands.pause(inspector.keys(queue_name)))
        switch.over()
        assert execute(inspector.redis, commands.pause(inspector.keys(queue_name)))
        assert inspector.queue(queue_name).paused


def test_a_consumer_hears_of_it_and_finds_the_new_primary(switch: Switch, queue_name: str) -> None:
    with Queue(queue_name, switch.url) as queue, queue.consumer(renew=False) as consumer:
        consumer.pull()
        switch.over()
        with pytest.raises(RedisReadOnly):
            consumer.pull()
        queue.send("t")
        consumer._leave()  # the new primary never heard of it
        consumer.register()
        assert len(consumer.pull()) == 1


def _waits(queue: Queue, id_: str) -> bool:
    clients: Any = queue.redis.client_list()
    return any(client["cmd"].lower() == "blmove" for client in clients)


@pytest.mark.each_server
def test_who_waits_for_a_result_goes_on_waiting(
    make_server: Callable[..., EmbeddedRedis], queue_name: str
) -> None:
    """A server that becomes a replica ends all waits with UNBLOCKED."""
    server = make_server(port=0)
    with Queue(queue_name, server.url) as queue:
        job = queue.send("t")
        found: list[object] = []

        def wait() -> None:
            try:
                found.append(job.result(PATIENCE))
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        eventually(lambda: _waits(queue, job.id), "the wait")
        with queue.redis.pipeline(transaction=True) as both:  # nobody sees it as a replica
            both.execute_command("REPLICAOF", "127.0.0.1", "1")
            both.execute_command("REPLICAOF", "NO", "ONE")
            both.execute()
        with queue.consumer(jobs=1, renew=False) as consumer:
            (held,) = consumer.pull()
            consumer.ack(held, "found")
        thread.join(20)
        assert found == ["found"]


def test_a_task_that_waits_for_a_result_goes_on_waiting(
    make_server: Callable[..., EmbeddedRedis], queue_name: str
) -> None:
    server = make_server(port=0)

    async def work(queue: Queue) -> object:
        async with AsyncQueue(queue_name, server.url) as aqueue:
            job = await aqueue.send("t")
            task = asyncio.create_task(job.result(PATIENCE))
            while not _waits(queue, job.id):
                await asyncio.sleep(0.01)
            with queue.redis.pipeline(transaction=True) as both:
                both.execute_command("REPLICAOF", "127.0.0.1", "1")
                both.execute_command("REPLICAOF", "NO", "ONE")
                both.execute()
            with queue.consumer(jobs=1, renew=False) as consumer:
                (held,) = consumer.pull()
                consumer.ack(held, "found")
            return await task

    with Queue(queue_name, server.url) as queue:
        assert asyncio.run(work(queue)) == "found"


@pytest.mark.parametrize("waits", WAITS)
def test_who_waits_on_a_server_that_becomes_a_replica_goes_on_waiting(
    switch: Switch, queue_name: str, waits: Waits
) -> None:
    """Also where its address leads to the new primary only some time after that."""
    with Queue(queue_name, switch.url) as queue, Queue(queue_name, switch.new_url) as new:
        job = queue.send("t")
        new.enqueue_puts([commands.Put(job.id, b'["t"]')])  # replicated, as it were
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(waits, switch.url, queue_name, job.id, 30)
            eventually(lambda: _waits(queue, job.id), "the wait")
            switch.demote()
            with pytest.raises(TimeoutError):
                waiting.result(LONGER_THAN_A_CALL_TRIES_S)
            switch.lead()
            with new.consumer(jobs=1, renew=False) as consumer:
                (held,) = consumer.pull()
                consumer.ack(held, "found")
            assert waiting.result(PATIENCE) == "found"


@pytest.mark.parametrize("waits", WAITS)
def test_a_wait_on_a_server_that_stays_read_only_ends_with_that_when_the_time_is_over(
    make_server: Callable[..., EmbeddedRedis], queue_name: str, waits: Waits
) -> None:
    server = make_server(port=0)
    with Queue(queue_name, server.url) as queue:
        job = queue.send("t")
        queue.redis.execute_command("REPLICAOF", "127.0.0.1", "1")
        began = monotonic()
        with pytest.raises(RedisReadOnly):
            waits(server.url, queue_name, job.id, LONGER_THAN_A_CALL_TRIES_S)
        assert monotonic() - began >= LONGER_THAN_A_CALL_TRIES_S


def test_a_worker_finds_the_new_primary(switch: Switch, queue_name: str, tmp_path: Path) -> None:
    workers = WorkerFixture(switch.url, queue_name, tmp_path)
    try:
        child = workers.child()
        assert workers.result("c.echo", 1) == 1
        switch.over()
        # the new primary has nothing of the old one's: the worker joins again there
        assert workers.result("c.echo", 2) == 2
        assert "a bug in rqueue" not in child.log
    finally:
        workers.close()
