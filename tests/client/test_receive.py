"""What differs in `receive`: a full window is an error in a thread, and waited for by a task."""

import asyncio
from collections.abc import Callable

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import LifecycleError
from rqueue.protocol.credit import WindowCredit
from tests.support.patience import PATIENCE


def fill(queue: Queue, count: int) -> list[str]:
    return [queue.send("t", [i]).id for i in range(count)]


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


@pytest.fixture
def arun(server: EmbeddedRedis, queue_name: str) -> Callable[..., None]:
    def go(body: Callable[[AsyncQueue], object]) -> None:
        async def main() -> None:
            async with AsyncQueue(queue_name, server.url) as queue:
                await body(queue)  # type: ignore[misc]

        asyncio.run(main())

    return go


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
                job = await consumer.receive(PATIENCE)
                assert job is not None
                seen.append(job.id)
            assert seen == sent

    arun(body)
