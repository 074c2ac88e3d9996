"""The next job, waited for: `receive` and iteration, with lost connections, leases and credit."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConnectionLost, LifecycleError, NotRegistered, RegistrationLost
from rqueue.protocol import commands
from rqueue.protocol.credit import GrantCredit, WindowCredit
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.monitor import monitoring
from tests.support.proxy import Proxy


def fill(queue: Queue, count: int) -> list[str]:
    return [queue.send("t", [i]).id for i in range(count)]


def end_lease(queue: Queue) -> None:
    """As if all consumers had been frozen, and somebody else looked."""
    move_time(queue, 60_000)
    execute(queue.redis, commands.renew(queue.keys, 1000, []))


def test_jobs_come_one_by_one_in_order(queue: Queue, consumer: Consumer) -> None:
    sent = fill(queue, 3)
    for id_ in sent:
        job = consumer.receive(10)
        assert job is not None and job.id == id_
        assert consumer.ack(job)
    assert consumer.receive(0) is None


def test_nothing_comes_within_the_time(consumer: Consumer) -> None:
    begun = monotonic()
    assert consumer.receive(0.05) is None
    assert consumer.receive(0) is None
    assert 0.05 <= monotonic() - begun < 5


def test_a_handed_over_job_is_seen_without_waiting(queue: Queue, consumer: Consumer) -> None:
    assert consumer.receive(0) is None
    (sent,) = fill(queue, 1)
    job = consumer.receive(0)
    assert job is not None and job.id == sent


def test_a_job_ends_the_wait(queue: Queue, server: EmbeddedRedis) -> None:
    with (
        queue.consumer(jobs=2, renew=False) as consumer,
        monitoring(server.url) as monitor,
        ThreadPoolExecutor(1) as thread,
    ):
        receiving = thread.submit(consumer.receive, 20)
        monitor.wait_for("BLPOP", queue.keys.wake(consumer.name))
        (sent,) = fill(queue, 1)
        job = receiving.result(10)
        assert job is not None and job.id == sent


def test_a_due_job_ends_the_wait(queue: Queue, consumer: Consumer) -> None:
    assert consumer.receive(0) is None
    sent = queue.send("t", options=Options(delay_ms=50))
    job = consumer.receive(10)
    assert job is not None and job.id == sent.id


def test_iteration_goes_on_until_the_credit_is_given_up(queue: Queue, consumer: Consumer) -> None:
    sent, seen = fill(queue, 5), []
    for job in consumer:
        seen.append(job.id)
        consumer.ack(job)
        if len(seen) == 2:
            seen += [job.id for job in consumer.stop()]
    assert seen == sent
    assert consumer.receive() is None


def test_iteration_ends_when_it_is_closed(queue: Queue) -> None:
    fill(queue, 2)
    consumer = queue.consumer(renew=False).register()
    for job in consumer:
        consumer.ack(job)
        consumer.close()
    with pytest.raises(NotRegistered):
        consumer.receive(1)


def test_a_grant_that_is_used_up_is_the_end(queue: Queue) -> None:
    sent = fill(queue, 3)
    with queue.consumer(credit=GrantCredit(2), renew=False) as consumer:
        assert [job.id for job in consumer if consumer.ack(job)] == sent[:2]
        consumer.grant(5)
        job = consumer.receive(1)
        assert job is not None and job.id == sent[2]


@pytest.mark.parametrize("options", [{"jobs": 2}, {"credit": WindowCredit(2)}])
def test_a_full_window_is_said(queue: Queue, options: dict[str, object]) -> None:
    fill(queue, 3)
    with queue.consumer(renew=False, **options) as consumer:  # type: ignore[arg-type]
        first = consumer.receive(1)
        assert consumer.receive(1) and first
        with pytest.raises(LifecycleError, match="holds 2 unsettled jobs"):
            consumer.receive(1)
        consumer.ack(first)
        assert consumer.receive(1)


def test_a_job_that_is_cancelled_before_it_was_given_out_is_not(queue: Queue) -> None:
    sent = fill(queue, 3)
    with queue.consumer(jobs=3, renew=False) as consumer:
        assert consumer.receive(1)
        queue.cancel(sent[1])
        consumer.wait(1)
        job = consumer.receive(1)
        assert job is not None and job.id == sent[2]


def test_what_was_not_given_out_comes_with_the_next_pull(queue: Queue, consumer: Consumer) -> None:
    sent = fill(queue, 3)
    assert consumer.receive(1)
    assert [job.id for job in consumer.pull()] == sent[1:]


def test_a_lost_connection_is_made_good(far: Queue, near: Queue, proxy: Proxy) -> None:
    with far.consumer(jobs=9, renew=False) as consumer:
        seen = []
        for loss in (proxy.swallow_reply, lambda: proxy.cut_reply(10), proxy.cut) * 3:
            assert consumer.receive(0) is None
            sent = fill(near, 3)
            loss()
            for id_ in sent:
                job = consumer.receive(10)
                assert job is not None and job.id == id_
                seen.append(job)
            while consumer.held:
                try:
                    consumer.settle(ack=[job.id for job in seen])
                except ConnectionLost:
                    continue
            seen.clear()
    assert near.counts().held == near.counts().ready == 0


def test_an_outage_is_said_and_survived(far: Queue, near: Queue, proxy: Proxy) -> None:
    with far.consumer(jobs=9, renew=False) as consumer:
        assert consumer.receive(0) is None
        proxy.refuse()
        with pytest.raises(ConnectionLost):
            consumer.receive(5)
        proxy.accept()
        (sent,) = fill(near, 1)
        job = consumer.receive(10)
        assert job is not None and job.id == sent


# -- a consumer that is late -----------------------------------------------------------------------


def test_a_consumer_whose_lease_ended_comes_back(queue: Queue) -> None:
    sent = fill(queue, 3)
    with queue.consumer(jobs=3, renew=False) as consumer:
        name, job = consumer.name, consumer.receive(1)
        assert job is not None
        end_lease(queue)
        with pytest.raises(RegistrationLost, match="its jobs went back"):
            consumer.ack(job)
        again = consumer.receive(5)
        assert again is not None and again.id == sent[0]
        assert (consumer.rejoined, consumer.name != name, consumer.held) == (1, True, 3)
        assert consumer.ack(again)


def test_one_that_waits_hears_that_its_lease_ended(
    queue: Queue, server: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        queue.consumer(lease=0.6) as consumer,
        monitoring(server.url) as monitor,
        ThreadPoolExecutor(1) as thread,
    ):
        receiving = thread.submit(consumer.receive, 20)
        monitor.wait_for("BLPOP", queue.keys.wake(consumer.name))
        end_lease(queue)
        monitor.wait_for("BLPOP", queue.keys.base)
        (sent,) = fill(queue, 1)
        job = receiving.result(10)
        assert job is not None and job.id == sent
        assert consumer.rejoined >= 1
    assert "what it held was given back" in caplog.text


def test_a_wait_says_that_the_lease_ended(queue: Queue, server: EmbeddedRedis) -> None:
    with (
        queue.consumer(lease=0.6) as consumer,
        monitoring(server.url) as monitor,
        ThreadPoolExecutor(1) as thread,
    ):
        waiting = thread.submit(consumer.wait, 20)
        monitor.wait_for("BLPOP", queue.keys.wake(consumer.name))
        end_lease(queue)
        with pytest.raises(RegistrationLost, match="lease ended"):
            waiting.result(10)
        consumer.rejoin()
        assert consumer.pull() == []


# -- asyncio ---------------------------------------------------------------------------------------


@pytest.fixture
def arun(server: EmbeddedRedis, queue_name: str) -> Callable[..., None]:
    def go(body: Callable[[AsyncQueue], object]) -> None:
        async def main() -> None:
            async with AsyncQueue(queue_name, server.url) as queue:
                await body(queue)  # type: ignore[misc]

        asyncio.run(main())

    return go


def test_async_jobs_come_one_by_one(arun: Callable[..., None]) -> None:
    async def body(queue: AsyncQueue) -> None:
        async with queue.consumer(jobs=5, renew=False) as consumer:
            assert await consumer.receive(0) is None
            sent = [(await queue.send("t", [i])).id for i in range(7)]
            seen = []
            async for job in consumer:
                seen.append(job.id)
                await consumer.ack(job)
                if len(seen) == 7:
                    assert await consumer.stop() == []
            assert seen == sent

    arun(body)


def test_async_tasks_settle_beside_the_one_that_receives(arun: Callable[..., None]) -> None:
    async def body(queue: AsyncQueue) -> None:
        sent = [(await queue.send("t", [i])).id for i in range(20)]
        seen: list[str] = []
        async with queue.consumer(jobs=3, renew=False) as consumer, asyncio.TaskGroup() as group:

            async def work(job_id: str) -> None:
                await asyncio.sleep(0.001)
                assert await consumer.ack(job_id)
                seen.append(job_id)
                if len(seen) == 20:
                    await consumer.stop()

            async for job in consumer:
                assert consumer.held <= 3
                group.create_task(work(job.id))
        assert sorted(seen) == sorted(sent)

    arun(body)


def test_a_cancelled_receive_loses_nothing(arun: Callable[..., None]) -> None:
    async def body(queue: AsyncQueue) -> None:
        async with queue.consumer(jobs=50, renew=False) as consumer:
            sent, seen = [], []
            for i in range(40):
                sent.append((await queue.send("t", [i])).id)
                receiving = asyncio.create_task(consumer.receive(5))
                for _ in range(i % 8):
                    await asyncio.sleep(0)
                receiving.cancel()
                try:
                    job = await receiving
                except asyncio.CancelledError:
                    continue
                assert job is not None
                seen.append(job.id)
            while len(seen) < 40:
                job = await consumer.receive(5)
                assert job is not None
                seen.append(job.id)
            assert seen == sent

    arun(body)


def test_an_async_consumer_whose_lease_ended_comes_back(
    arun: Callable[..., None], server: EmbeddedRedis, queue_name: str
) -> None:
    async def body(queue: AsyncQueue) -> None:
        with Queue(queue_name, server.url) as other:
            async with queue.consumer(jobs=2, lease=0.6) as consumer:
                receiving = asyncio.create_task(consumer.receive(20))
                await asyncio.sleep(0)
                end_lease(other)
                while not consumer.rejoined:
                    await asyncio.sleep(0.01)
                sent = await queue.send("t")
                job = await receiving
                assert job is not None and job.id == sent.id
                end_lease(other)
                with pytest.raises(RegistrationLost, match="its jobs went back"):
                    await consumer.ack(job)
                again = await consumer.receive(5)
                assert again is not None and again.id == sent.id

    arun(body)


def test_more_says_that_work_waits(queue: Queue) -> None:
    """`state` is the list it is in, `more` whether it is to pull."""
    with queue.consumer(jobs=1, renew=False) as consumer:
        assert not consumer.more
        fill(queue, 2)
        (job,) = consumer.pull()
        assert (consumer.more, consumer.state) == (False, "not_interested")
        consumer.ack(job)
        consumer.interest(1)
        assert (consumer.more, consumer.state) == (True, "notified")
