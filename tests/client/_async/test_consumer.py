"""The consumer from Python: credit that the queue honours, the end of credit, lost connections."""

from time import monotonic

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    ConfigError,
    ConnectionLost,
    ConsumerGone,
    ConsumerRefused,
    LifecycleError,
    NotRegistered,
    RegistrationLost,
)
from rqueue.model.job import Delivery
from rqueue.protocol import commands
from rqueue.protocol.commands import Window
from rqueue.protocol.credit import GrantCredit, SharedCredit, WindowCredit
from tests.support.both import AsyncTogether, aend_lease, amove_time, aoutside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import apull, apull_one


async def fill(queue: AsyncQueue, count: int) -> list[str]:
    return [(await queue.send("t", [i])).id for i in range(count)]


def ids(jobs: list[Delivery]) -> list[str]:
    return [job.id for job in jobs]


# -- life ------------------------------------------------------------------------------------------


async def test_life_cycle(queue: AsyncQueue) -> None:
    consumer = queue.consumer(renew=False)
    for act in (consumer.pull, consumer.settle, consumer.wait, consumer.stop, consumer.flush):
        with pytest.raises(NotRegistered, match=r"use it in a 'with' block .* or call register"):
            await act()
    await consumer.close()  # never joined: nothing to do
    async with consumer:
        with pytest.raises(LifecycleError):
            await consumer.register()
        assert consumer.state == "interested"
        assert queue.name in repr(consumer)
    assert "closed" in repr(consumer)
    await consumer.close()
    with pytest.raises(NotRegistered):
        await consumer.pull()


async def test_who_is_refused_keeps_no_connection(queue: AsyncQueue) -> None:
    await queue.configure(max_consumers=1)
    async with queue.consumer(renew=False):
        refused = queue.consumer(renew=False)
        with pytest.raises(ConsumerRefused):
            await refused.__aenter__()
        assert not refused._connection.connected
    async with refused:  # there is room now
        assert refused.state == "interested"


async def test_closing_releases_in_place(queue: AsyncQueue) -> None:
    sent = await fill(queue, 4)
    async with queue.consumer(jobs=3, renew=False) as first:
        jobs = await first.pull()
        await first.ack(jobs[1])
    async with queue.consumer(jobs=9, renew=False) as second:
        again = await second.pull()
        assert ids(again) == [sent[0], sent[2], sent[3]]
        assert [(job.deliveries, job.attempts) for job in again] == [(1, 0), (1, 0), (0, 0)]


# -- credit ----------------------------------------------------------------------------------------


async def test_a_window_comes_back_when_jobs_are_settled(queue: AsyncQueue) -> None:
    sent = await fill(queue, 6)
    async with queue.consumer(credit=WindowCredit(2), renew=False) as consumer:
        jobs = await consumer.pull()
        assert (ids(jobs), consumer.state, await consumer.pull()) == (
            sent[:2],
            "not_interested",
            [],
        )
        assert ids(await consumer.settle(ack=jobs[:1], pull=True)) == sent[2:3]
        assert await consumer.grant(2) == "notified"
        assert ids(await consumer.pull()) == sent[3:5]
        assert consumer.held == 4
        with pytest.raises(ConfigError):
            await consumer.interest(1)


async def test_a_grant_is_used_up(queue: AsyncQueue) -> None:
    sent = await fill(queue, 6)
    credit = GrantCredit(3)
    async with queue.consumer(credit=credit, renew=False) as consumer:
        jobs = await consumer.pull()
        assert (ids(jobs), credit.jobs) == (sent[:3], 0)
        assert await consumer.settle(ack=jobs, pull=True) == []
        assert (consumer.state, consumer.held) == ("not_interested", 0)
        assert await consumer.grant(2) == "notified"
        assert ids(await consumer.pull()) == sent[3:5]


async def test_a_grant_holds_for_jobs_that_are_handed_over(queue: AsyncQueue) -> None:
    credit = GrantCredit(3)
    async with queue.consumer(credit=credit, renew=False) as consumer:
        assert await consumer.pull() == []
        first = await queue.send("t")
        assert first.handed_to == consumer.name
        (job,) = await apull(consumer, 1)
        assert credit.jobs == 2
        await consumer.pull()
        await consumer.ack(job)  # the queue must not take this for room
        assert consumer.state == "interested"
        sent = await fill(queue, 5)
        assert ids(await apull(consumer, 2)) == sent[:2]
        assert (await consumer.pull(), consumer.held, credit.jobs) == ([], 2, 0)
        assert consumer.state == "not_interested"


async def test_a_grant_that_is_held_in_full_opens_again(queue: AsyncQueue) -> None:
    """More is held than is still granted: the client says so before and after the settle."""
    credit = GrantCredit(4)
    sent = await fill(queue, 3)
    async with queue.consumer(credit=credit, renew=False) as consumer:
        jobs = await consumer.pull()
        assert (consumer.state, credit.jobs) == ("interested", 1)
        await consumer.settle(ack=jobs)
        assert consumer.state == "interested"
        assert (await queue.send("t")).handed_to == consumer.name
        assert (await queue.send("t")).handed_to == ""
        assert len(sent) == 3


async def test_bytes_are_credit_too(queue: AsyncQueue) -> None:
    for _ in range(3):
        await queue.send("t", ["x" * 1000])
    async with queue.consumer(credit=WindowCredit(10, 2500), renew=False) as consumer:
        jobs = await consumer.pull()
        assert (len(jobs), consumer.state) == (2, "not_interested")
        assert 2000 < consumer.held_bytes < 2500
        assert len(await consumer.settle(ack=jobs[:1], pull=True)) == 1
    async with queue.consumer(credit=WindowCredit(10, 10), renew=False) as consumer:
        assert len(await consumer.pull()) == 1  # larger than all its bytes: it passes alone


async def test_consumers_of_two_queues_share_one_window(queue: AsyncQueue) -> None:
    other = queue.at(queue.name + "-b")
    await fill(queue, 20)
    shared = SharedCredit(6)
    first = queue.consumer(credit=shared, renew=False)
    second = other.consumer(credit=shared, renew=False)
    async with first, second:
        mine = await first.pull()
        assert (len(mine), await second.pull(), shared.jobs_used) == (5, [], 5)
        await fill(other, 20)
        theirs = await apull(second, 1)
        assert await second.pull() == []
        assert shared.jobs_used == 6
        mine = await first.settle(ack=mine, pull=True)
        theirs = await second.settle(ack=theirs, pull=True)
        assert (len(mine), len(theirs)) == (3, 3)
        await first.stop()
        assert len(await second.settle(ack=theirs, pull=True)) == 3
    assert shared.jobs_used == 0


async def test_sharing_consumer_that_waits_leaves_the_rest_to_others(queue: AsyncQueue) -> None:
    other = queue.at(queue.name + "-b")
    shared = SharedCredit(6)
    first = queue.consumer(credit=shared, renew=False)
    second = other.consumer(credit=shared, renew=False)
    async with first, second:
        assert await first.pull() == []
        assert first.window.jobs == 1
        await fill(other, 9)
        assert len(await apull(second, 5)) == 5
        await fill(queue, 1)
        assert len(await apull(first, 1)) == 1
        assert shared.jobs_used == 6


async def test_one_whose_registration_was_lost_leaves_its_credit_to_others(
    queue: AsyncQueue,
) -> None:
    other = queue.at(queue.name + "-b")
    await fill(queue, 20)
    await fill(other, 20)
    shared = SharedCredit(6)
    first = queue.consumer(credit=shared, renew=False)
    second = other.consumer(credit=shared, renew=False)
    async with first, second:
        assert (len(await first.pull()), len(await second.pull())) == (5, 1)
        await aend_lease(queue)
        with pytest.raises(ConsumerGone):
            await first.pull()
        assert len(await second.pull()) == 4  # the first one has room for a job when it is back
        await first.rejoin()
        assert len(await first.pull()) == 1
        assert shared.jobs_used == 6


async def test_credit_follows_a_recall(queue: AsyncQueue) -> None:
    sent = await fill(queue, 4)
    credit = WindowCredit(3)
    async with queue.consumer(credit=credit, renew=False) as consumer:
        jobs = await consumer.pull()
        await queue._run(commands.cancel(queue.keys, sent[1]))
        # what it counted as settled was not: the reply, or the call, was lost
        consumer._settled(jobs[:1], (), (), (), (), b"", 0)
        assert credit.jobs_used == 2
        recalled = await consumer.pull(recall=True)
        assert sent[0] in ids(recalled)
        assert credit.jobs_used == consumer.held == len(recalled)


async def test_credit_is_free_again_when_the_registration_is_lost(queue: AsyncQueue) -> None:
    await fill(queue, 2)
    credit = WindowCredit(2)
    consumer = await queue.consumer(credit=credit, lease=1, renew=False).register()
    assert len(await consumer.pull()) == 2
    await amove_time(queue, 5000)
    async with queue.consumer(jobs=5, renew=False) as other:
        await queue._run(commands.renew(queue.keys, 1000, []))
        assert len(await other.pull()) == 2
        with pytest.raises(RegistrationLost, match="lease"):
            await consumer.pull()
        assert (credit.jobs, consumer.held) == (2, 0)
    await consumer.rejoin()
    assert len(await consumer.pull()) == 2
    await consumer.close()


# -- the end of credit (Q-54) ----------------------------------------------------------------------


async def test_stop_keeps_what_is_held_and_tells_what_was_handed_over(queue: AsyncQueue) -> None:
    async with queue.consumer(jobs=3, renew=False) as consumer:
        await consumer.pull()
        first = await queue.send("t")
        second = await queue.send("t")
        assert (first.handed_to, second.handed_to) == (consumer.name, "")
        assert ids(await consumer.stop()) == [first.id]
        assert (consumer.state, consumer.held, await consumer.stop()) == ("not_interested", 1, [])
        assert (await queue.send("t")).handed_to == ""
        assert await consumer.pull() == []
        assert await consumer.ack(first.id)
        assert await consumer.interest(1) == "notified"
        assert ids(await consumer.pull()) == [second.id]


async def test_flush_takes_what_credit_allows_and_ends_it(queue: AsyncQueue) -> None:
    sent = await fill(queue, 5)
    async with queue.consumer(jobs=3, renew=False) as consumer:
        assert ids(await consumer.flush()) == sent[:3]
        assert (consumer.state, consumer.window.jobs) == ("not_interested", 0)
    async with queue.consumer(credit=GrantCredit(9), renew=False) as consumer:
        assert ids(await consumer.flush()) == sent
        await consumer.settle(ack=sent)
        assert (consumer.state, await consumer.pull()) == ("not_interested", [])


async def test_drain_goes_on_until_nothing_is_left(queue: AsyncQueue) -> None:
    sent = await fill(queue, 7)
    async with queue.consumer(jobs=2, renew=False) as consumer:
        seen = []
        async for jobs in consumer.drain():
            seen += ids(jobs)
            await consumer.settle(ack=jobs)
        assert (seen, consumer.state) == (sent, "not_interested")
        assert (await queue.send("t")).handed_to == ""


async def test_drain_passes_over_many_cancelled_jobs(queue: AsyncQueue) -> None:
    sent = await fill(queue, 60)
    for id_ in sent[:59]:
        await queue.cancel(id_)
    async with queue.consumer(jobs=1, renew=False) as consumer:
        assert [ids(jobs) async for jobs in consumer.drain()] == [[sent[59]]]


async def test_a_browser_flushes_pages(queue: AsyncQueue) -> None:
    sent = await fill(queue, 5)
    async with queue.consumer(jobs=2, mode="browse", renew=False) as browser:
        assert ids(await browser.pull()) == sent[:2]
        assert ids(await browser.flush()) == sent[2:]
        assert await browser.stop() == []
    assert (await queue.counts()).ready == 5


# -- connections -----------------------------------------------------------------------------------


async def test_a_reply_that_is_lost_loses_no_job(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    async with far.consumer(jobs=3, renew=False) as consumer:
        await consumer.settle(pull=True)
        await consumer.stop()  # the scripts are known, and nothing is delivered
        consumer._state.window = Window(3)
        sent = await fill(near, 5)
        proxy.cut_reply(10)
        with pytest.raises(ConnectionLost):
            await consumer.pull()
        assert (await near.counts()).held == 3  # it has them, and does not know
        assert ids(await consumer.pull(recall=True)) == sent[:3]
        proxy.swallow_reply()
        with pytest.raises(ConnectionLost):
            await consumer.settle(ack=sent[:3], pull=True)
        assert ids(await consumer.pull(recall=True)) == sent[3:]
        await consumer.settle(ack=sent)
        assert consumer.refused == sent[:3]  # the first settle had counted
    assert (await near.counts()).meta["acked"] == "5"


async def test_a_wait_says_that_wake_ups_may_be_lost(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    async with far.consumer(jobs=3, renew=False) as consumer, AsyncTogether() as together:
        with monitoring(near.settings.url or "") as monitor:
            waiting = together.start(consumer.wait, 20)
            await aoutside(monitor.wait_for, "BLPOP")
            proxy.cut()
            assert await waiting.result(PATIENCE) == []
        sent = await fill(near, 1)
        assert [wake.kind for wake in await consumer.wait(20)] == ["reconnected"]
        with pytest.raises(ConnectionLost):
            await consumer.pull(recall=True)  # its other connection was cut too, unnoticed so far
        assert ids(await consumer.pull(recall=True)) == sent


async def test_a_wait_while_redis_is_away(far: AsyncQueue, proxy: Proxy, near: AsyncQueue) -> None:
    async with far.consumer(jobs=1, renew=False) as consumer:
        proxy.refuse()
        with pytest.raises(ConnectionLost):
            await consumer.wait(20)
        with pytest.raises(ConnectionLost):
            await consumer.pull()
        proxy.accept()
        assert [wake.kind for wake in await consumer.wait(20)] == ["reconnected"]
        sent = await fill(near, 1)
        assert ids(await apull(consumer, 1)) == sent


async def test_a_lease_is_renewed_beside_the_work(queue: AsyncQueue, server: EmbeddedRedis) -> None:
    with monitoring(server.url) as monitor:
        async with queue.consumer(lease=1.2) as consumer:
            await aoutside(monitor.wait_for, "EVALSHA", "1200", consumer.name, times=2)


async def test_a_renewal_that_is_refused_is_tried_again(
    queue: AsyncQueue, server: EmbeddedRedis
) -> None:
    """A damaged queue: the renewer lives on, and a wait does not spin."""
    aside = f"{queue.keys.base}aside"
    async with queue.consumer(lease=3) as consumer:
        await queue.redis.rename(queue.keys.consumers, aside)
        await queue.redis.set(queue.keys.consumers, "not ours")
        with monitoring(server.url) as monitor:
            await aoutside(monitor.wait_for, "EVALSHA", "3000", consumer.name, times=3)
        await queue.redis.rename(aside, queue.keys.consumers)
        begun = monotonic()
        assert await consumer.wait(0.05) == []
        assert monotonic() - begun >= 0.05
        assert await consumer.pull() == []


async def test_a_cancelled_job_is_revoked(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    handle = await queue.send("t")
    job = await apull_one(consumer)
    await handle.cancel()
    (wake,) = await consumer.wait(10)
    assert (wake.kind, wake.id, consumer.held) == ("revoked", job.id, 0)
    assert not await consumer.ack(job)
    assert consumer.refused == [job.id]


async def test_closing_over_a_cut_connection(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy
) -> None:
    sent = await fill(near, 1)
    async with far.consumer(jobs=1, renew=False) as consumer:
        assert ids(await consumer.pull()) == sent
        proxy.cut()
    assert (await near.counts()).ready == 1
