"""What runs around enqueues sees each of them, whichever way a job is enqueued."""

import asyncio
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest
import redis

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.model.job import Delivery
from rqueue.protocol.job_packer import Call
from rqueue.tasks.app import App
from rqueue.tasks.decorator import task
from rqueue.tasks.middleware import Middleware
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.request import JobRequest

T = TypeVar("T")
tenant: ContextVar[Any] = ContextVar("tenant")


@task(name="add", registry=Registry())
def add(a: int) -> int:
    return a


class Stamp(Middleware):
    """Notes what it sees, and adds a header and a priority."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: list[tuple[str, str, str]] = []

    def around_enqueue(self, request: JobRequest, call: Callable[[JobRequest], T]) -> T:
        before = request.options.headers.get("by", "")
        options = request.options.merged(priority=9)
        made: Any = call(request._replace(options=options).with_headers({"by": before + self.name}))
        self.seen.append((request.task, request.queue, made.id))
        answer: T = made
        return answer


@pytest.fixture
def queue(client: redis.Redis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, redis=client) as queue:
        yield queue
    queue.redis.unlink(*list(client.scan_iter(match=queue.keys.base + "*", count=1000)))


@pytest.fixture
def stamps() -> Iterator[list[Stamp]]:
    made = [Stamp("a"), Stamp("b")]
    with App(context=[tenant], middleware=made[:1]), App(middleware=made[1:]):
        yield made


def test_every_way_to_enqueue(queue: Queue, stamps: list[Stamp]) -> None:
    token = tenant.set("acme")
    jobs = [queue.enqueue(add, 1), add.options(sender=queue).enqueue(2), queue.send("add", [3])]
    jobs += queue.enqueue_many([Call(add, (4,)), Call("add", [5])])
    with queue.putter() as putter:
        puts = [putter.put(add, 6)]
    with queue.transaction() as tx:
        jobs.append(tx.enqueue(add, 7))
    tenant.reset(token)
    ids = [job.id for job in (*jobs[:5], *puts, jobs[5])]
    assert [seen[2] for seen in stamps[0].seen] == ids
    assert stamps[0].seen == stamps[1].seen, "they have the same id"
    assert {seen[:2] for seen in stamps[0].seen} == {("add", queue.name)}
    with queue.consumer(jobs=50, renew=False) as consumer:
        for number in range(1, 8):
            job = consumer.receive(1)
            assert job is not None
            envelope = queue.envelope(job)
            assert envelope.args == [number]
            assert envelope.opts["headers"] == {"tenant": "acme", "by": "ab"}
            assert job.header.level == 9
            consumer.ack(job)


def test_asyncio(queue: Queue, server: EmbeddedRedis, stamps: list[Stamp]) -> None:
    async def enqueue() -> list[str]:
        async with AsyncQueue(queue.name, server.url) as far:
            tenant.set("b")
            one = await far.enqueue(add, 1)
            (two,) = await far.enqueue_many([Call(add, (2,))])
            async with far.putter() as putter:
                three = await putter.put(add, 3)
            return [one.id, two.id, three.id]

    assert asyncio.run(enqueue()) == [seen[2] for seen in stamps[1].seen]


def drained(consumer: Consumer) -> Iterator[Delivery]:
    while (job := consumer.receive(0)) is not None:
        yield job


def test_what_is_given_wins_over_the_context(queue: Queue) -> None:
    with App(context=[tenant]):
        tenant.set("acme")
        mine = Options(headers={"tenant": "mine", "more": "x"})
        job = queue.send("add", [1], options=mine)
        tenant.set(None)
        bare = queue.send("add", [1])
        tenant.set(5)
        with pytest.raises(ConfigError, match="tenant is 5: a header is text"):
            queue.send("add", [1])
    with queue.consumer(jobs=5, renew=False) as consumer:
        opts = {got.id: queue.envelope(got).opts for got in drained(consumer)}
    assert opts == {job.id: {"headers": {"tenant": "mine", "more": "x"}}, bare.id: {}}


def test_a_hook_that_raises_or_forgets_stores_nothing(queue: Queue) -> None:
    class Veto(Middleware):
        def around_enqueue(self, request: JobRequest, call: Callable[[JobRequest], T]) -> T:
            raise PermissionError(request.task)

    class Forgets(Middleware):
        def around_enqueue(self, request: JobRequest, call: Callable[[JobRequest], T]) -> T:
            call(request)
            return None  # type: ignore[return-value]

    with App(middleware=[Veto()]), pytest.raises(PermissionError, match="add"):
        queue.enqueue(add, 1)
    with (
        App(middleware=[Forgets()]),
        pytest.raises(ConfigError, match=r"around_enqueue returned n"),
    ):
        queue.enqueue_many([Call(add, (1,))])
    assert not queue.redis.exists(queue.keys.meta)
    queue.enqueue(add, 1)
