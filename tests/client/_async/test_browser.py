"""A browser's credit: it does not hold the jobs it is shown, and they still count."""

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.errors import ConsumerGone
from rqueue.protocol.credit import GrantCredit, WindowCredit
from tests.support.patience import PATIENCE


async def fill(queue: AsyncQueue, count: int, size: int = 1) -> list[str]:
    return [(await queue.send("t", ["x" * size])).id for _ in range(count)]


def ids(jobs: list) -> list[str]:  # type: ignore[type-arg]
    return [job.id for job in jobs]


async def test_without_credit_it_is_shown_nothing(queue: AsyncQueue) -> None:
    """Q-34, X-22: and that is no end."""
    sent = await fill(queue, 3)
    async with queue.consumer(jobs=0, mode="browse", renew=False) as browser:
        assert (
            await browser.pull(),
            await browser.receive(5),
            [jobs async for jobs in browser.drain()],
        ) == ([], None, [])
        assert await browser.interest(2) == "browsers"
        assert ids(await browser.pull()) == sent[:2]


async def test_a_window_is_free_again_at_once(queue: AsyncQueue) -> None:
    """It holds nothing: the window bounds what one pull shows."""
    sent = await fill(queue, 5)
    for options in ({"jobs": 2}, {"credit": WindowCredit(2)}):
        async with queue.consumer(mode="browse", renew=False, **options) as browser:  # type: ignore[arg-type]
            assert [ids(await browser.pull()) for _ in range(4)] == [
                sent[:2],
                sent[2:4],
                sent[4:],
                [],
            ]
            assert browser.held == 0


async def test_a_grant_is_used_up(queue: AsyncQueue) -> None:
    """Q-51."""
    sent = await fill(queue, 5)
    credit = GrantCredit(3)
    async with queue.consumer(mode="browse", credit=credit, renew=False) as browser:
        assert ids(await browser.pull()) == sent[:3]
        assert (credit.jobs, browser.state, await browser.pull()) == (0, "not_interested", [])
        await fill(queue, 1)
        assert await queue.redis.llen(queue.keys.wake(browser.name)) == 0  # it was not woken
        assert await browser.grant(1) == "browsers"
        assert ids(await browser.pull()) == sent[3:4]


async def test_bytes_count_too(queue: AsyncQueue) -> None:
    """X-11: the first always fits."""
    sent = await fill(queue, 5, 1000)
    async with queue.consumer(jobs=10, bytes=2500, mode="browse", renew=False) as browser:
        assert [ids(await browser.pull()) for _ in range(3)] == [sent[:2], sent[2:4], sent[4:]]
    async with queue.consumer(jobs=10, bytes=10, mode="browse", renew=False) as browser:
        assert ids(await browser.pull()) == sent[:1]
    credit = GrantCredit(10, 2500)
    async with queue.consumer(mode="browse", credit=credit, renew=False) as browser:
        assert ids(await browser.pull()) == sent[:2]
        assert 0 < credit.bytes < 500


async def test_stop_ends_it_until_there_is_credit_again(queue: AsyncQueue) -> None:
    sent = await fill(queue, 3)
    async with queue.consumer(jobs=1, mode="browse", renew=False) as browser:
        assert ids(await browser.pull()) == sent[:1]
        assert await browser.stop() == []
        assert (browser.state, await browser.pull()) == ("not_interested", [])
        await browser.interest(5)
        assert ids(await browser.pull()) == sent[1:]


async def test_it_receives_what_is_there_and_what_comes(queue: AsyncQueue) -> None:
    sent = await fill(queue, 3)
    async with queue.consumer(jobs=2, mode="browse", renew=False) as browser:
        seen = []
        async for job in browser:
            seen.append(job.id)
            if len(seen) == 3:
                assert await browser.receive(0) is None
                sent += await fill(queue, 2)
            if len(seen) == 5:
                await browser.stop()
        assert seen == sent
    assert (await queue.counts()).ready == 5


@pytest.mark.parametrize("renew", [False, True])
@pytest.mark.parametrize("waits", [False, True])
async def test_it_learns_that_its_queue_was_deleted(
    queue: AsyncQueue, waits: bool, renew: bool
) -> None:
    """As a consumer that acquires: one that waits is woken, and its next calls say so."""
    sent = await fill(queue, 1)
    async with queue.consumer(jobs=5, mode="browse", renew=renew) as browser:
        assert ids(await browser.pull()) == sent
        assert await browser.pull() == []
        await queue.delete(jobs=True, consumers=True)
        with pytest.raises(ConsumerGone):
            if waits:
                assert await browser.wait(PATIENCE)
            await browser.pull()


@pytest.mark.parametrize("renew", [False, True])
async def test_it_begins_anew_in_the_queue_that_comes_then(queue: AsyncQueue, renew: bool) -> None:
    """Which `receive` does by itself, for all consumers."""
    async with queue.consumer(jobs=5, mode="browse", renew=renew) as browser:
        assert await browser.receive(0) is None
        await queue.delete(consumers=True)
        assert (await browser.receive(0), browser.rejoined) == (None, 1)
        sent = await fill(queue, 1)
        job = await browser.receive(PATIENCE)
        assert job is not None and job.id == sent[0]
