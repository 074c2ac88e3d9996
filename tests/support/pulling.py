"""Pulling jobs as a worker does: pull, and where that brings nothing wait for a wake-up."""

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._sync.consumer import Consumer
from rqueue.model.job import Delivery
from rqueue.model.job_order import in_order


def pull(consumer: Consumer, count: int) -> list[Delivery]:
    """The next `count` jobs, in the queue's order (a job delivered directly may be read late)."""
    jobs: list[Delivery] = []
    while True:
        jobs += consumer.pull()
        if len(jobs) >= count:
            assert len(jobs) == count, "more came than were asked for"
            return sorted(jobs, key=in_order)
        wakes = consumer.wait(10)
        assert wakes, f"nothing came within ten seconds; {len(jobs)} of {count} jobs did before"
        jobs += [wake.job for wake in wakes if wake.job]
        if len(jobs) == count:
            return sorted(jobs, key=in_order)


def pull_one(consumer: Consumer) -> Delivery:
    return pull(consumer, 1)[0]


async def apull(consumer: AsyncConsumer, count: int) -> list[Delivery]:
    """`pull` for asyncio."""
    jobs: list[Delivery] = []
    while True:
        jobs += await consumer.pull()
        if len(jobs) >= count:
            assert len(jobs) == count, "more came than were asked for"
            return sorted(jobs, key=in_order)
        wakes = await consumer.wait(10)
        assert wakes, f"nothing came within ten seconds; {len(jobs)} of {count} jobs did before"
        jobs += [wake.job for wake in wakes if wake.job]
        if len(jobs) == count:
            return sorted(jobs, key=in_order)


async def apull_one(consumer: AsyncConsumer) -> Delivery:
    return (await apull(consumer, 1))[0]
