"""The next job, waited for: `receive` and iteration, with lost connections, leases and credit."""

from time import monotonic

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConnectionLost, NotRegistered, RegistrationLost
from rqueue.protocol.credit import GrantCredit
from rqueue.tasks.options import Options
from tests.support.both import AsyncTogether, aend_lease, aoutside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy


async def fill(queue: AsyncQueue, count: int) -> list[str]:
    return [(await queue.send("t", [i])).id for i in range(count)]


async def test_jobs_come_one_by_one_in_order(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    sent = await fill(queue, 3)
    for id_ in sent:
        job = await consumer.receive(PATIENCE)
        assert job is not None and job.id == id_
        assert await consumer.ack(job)
    assert await consumer.receive(0) is None


async def test_nothing_comes_within_the_time(consumer: AsyncConsumer) -> None:
    begun = monotonic()
    assert await consumer.receive(0.05) is None
    assert await consumer.receive(0) is None
    assert 0.05 <= monotonic() - begun < 20


async def test_a_handed_over_job_is_seen_without_waiting(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    assert await consumer.receive(0) is None
    (sent,) = await fill(queue, 1)
    job = await consumer.receive(0)
    assert job is not None and job.id == sent


async def test_a_job_ends_the_wait(queue: AsyncQueue, server: EmbeddedRedis) -> None:
    async with queue.consumer(jobs=2, renew=False) as consumer, AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            receiving = together.start(consumer.receive, 20)
            await aoutside(monitor.wait_for, "BLPOP", queue.keys.wake(consumer.name))
            (sent,) = await fill(queue, 1)
            job = await receiving.result(PATIENCE)
            assert job is not None and job.id == sent


async def test_a_due_job_ends_the_wait(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    assert await consumer.receive(0) is None
    sent = await queue.send("t", options=Options(delay_ms=50))
    job = await consumer.receive(PATIENCE)
    assert job is not None and job.id == sent.id


async def test_iteration_goes_on_until_the_credit_is_given_up(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    sent, seen = await fill(queue, 5), []
    async for job in consumer:
        seen.append(job.id)
        await consumer.ack(job)
        if len(seen) == 2:
            seen += [job.id for job in await consumer.stop()]
    assert seen == sent
    assert await consumer.receive() is None


async def test_iteration_ends_when_it_is_closed(queue: AsyncQueue) -> None:
    await fill(queue, 2)
    consumer = await queue.consumer(renew=False).register()
    async for job in consumer:
        await consumer.ack(job)
        await consumer.close()
    with pytest.raises(NotRegistered):
        await consumer.receive(1)


async def test_a_grant_that_is_used_up_is_the_end(queue: AsyncQueue) -> None:
    sent = await fill(queue, 3)
    async with queue.consumer(credit=GrantCredit(2), renew=False) as consumer:
        assert [job.id async for job in consumer if await consumer.ack(job)] == sent[:2]
        await consumer.grant(5)
        job = await consumer.receive(PATIENCE)
        assert job is not None and job.id == sent[2]


async def test_a_job_that_is_cancelled_before_it_was_given_out_is_not(queue: AsyncQueue) -> None:
    sent = await fill(queue, 3)
    async with queue.consumer(jobs=3, renew=False) as consumer:
        assert await consumer.receive(PATIENCE)
        await queue.cancel(sent[1])
        await consumer.wait(PATIENCE)
        job = await consumer.receive(PATIENCE)
        assert job is not None and job.id == sent[2]


async def test_what_was_not_given_out_comes_with_the_next_pull(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    sent = await fill(queue, 3)
    assert await consumer.receive(PATIENCE)
    assert [job.id for job in await consumer.pull()] == sent[1:]


async def test_a_lost_connection_is_made_good(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    """C-15."""
    async with far.consumer(jobs=9, renew=False) as consumer:
        seen = []
        for loss in (proxy.swallow_reply, lambda: proxy.cut_reply(10), proxy.cut) * 3:
            assert await consumer.receive(0) is None
            sent = await fill(near, 3)
            loss()
            for id_ in sent:
                job = await consumer.receive(PATIENCE)
                assert job is not None and job.id == id_
                seen.append(job)
            while consumer.held:
                try:
                    await consumer.settle(ack=[job.id for job in seen])
                except ConnectionLost:
                    continue
            seen.clear()
    assert (await near.counts()).held == (await near.counts()).ready == 0


async def test_an_outage_is_said_and_survived(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    async with far.consumer(jobs=9, renew=False) as consumer:
        assert await consumer.receive(0) is None
        proxy.refuse()
        with pytest.raises(ConnectionLost):
            await consumer.receive(5)
        proxy.accept()
        (sent,) = await fill(near, 1)
        job = await consumer.receive(PATIENCE)
        assert job is not None and job.id == sent


# -- a consumer that is late -----------------------------------------------------------------------


async def test_a_consumer_whose_lease_ended_comes_back(queue: AsyncQueue) -> None:
    sent = await fill(queue, 3)
    async with queue.consumer(jobs=3, renew=False) as consumer:
        name, job = consumer.name, await consumer.receive(PATIENCE)
        assert job is not None
        await aend_lease(queue)
        with pytest.raises(RegistrationLost, match="its lease ended"):
            await consumer.ack(job)
        again = await consumer.receive(PATIENCE)
        assert again is not None and again.id == sent[0]
        assert (consumer.rejoined, consumer.name != name, consumer.held) == (1, True, 3)
        assert await consumer.ack(again)


async def test_one_that_waits_hears_that_its_lease_ended(
    queue: AsyncQueue, server: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    # long enough that it does not end by itself before the wait begins, on a busy machine
    async with queue.consumer(lease=3) as consumer, AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            receiving = together.start(consumer.receive, 20)
            await aoutside(monitor.wait_for, "BLPOP", queue.keys.wake(consumer.name))
            await aend_lease(queue)
            await aoutside(monitor.wait_for, "BLPOP", queue.keys.base)
            (sent,) = await fill(queue, 1)
            job = await receiving.result(PATIENCE)
            assert job is not None and job.id == sent
            assert consumer.rejoined >= 1
    assert "is no longer registered" in caplog.text


async def test_a_wait_says_that_the_lease_ended(queue: AsyncQueue, server: EmbeddedRedis) -> None:
    # long enough that it does not end by itself before the wait begins, on a busy machine
    async with queue.consumer(lease=3) as consumer, AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            waiting = together.start(consumer.wait, 20)
            await aoutside(monitor.wait_for, "BLPOP", queue.keys.wake(consumer.name))
            await aend_lease(queue)
            with pytest.raises(RegistrationLost, match="lease ended"):
                await waiting.result(PATIENCE)
            await consumer.rejoin()
            assert await consumer.pull() == []


async def test_more_says_that_work_waits(queue: AsyncQueue) -> None:
    """`state` is the list it is in, `more` whether it is to pull."""
    async with queue.consumer(jobs=1, renew=False) as consumer:
        assert not consumer.more
        await fill(queue, 2)
        (job,) = await consumer.pull()
        assert (consumer.more, consumer.state) == (False, "not_interested")
        await consumer.ack(job)
        await consumer.interest(1)
        assert (consumer.more, consumer.state) == (True, "notified")
