"""One watches a job: its reports and its end are heard, without polling, and nobody else's."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RegistrationLost, ResultError, UnknownJob
from rqueue.model.job import Delivery
from rqueue.model.log_line import packed_line
from rqueue.model.progress import packed
from rqueue.protocol import commands
from rqueue.protocol.commands import JobReport
from tests.support.both import AsyncTogether, aoutside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import apull

pytestmark = pytest.mark.each_server


async def report(
    queue: AsyncQueue,
    consumer: AsyncConsumer,
    id: str,
    done: int,
    *,
    term: str = "",
    over: tuple[str, ...] = (),
) -> list[str]:
    """What a worker sends for a job that reports."""
    said = [JobReport(id, 1, packed((done, 10, "pages")))]
    call = commands.report(queue.keys, consumer.name, term or consumer.term, said, over)
    return await queue._run(call)


async def seen(handle: AsyncJobHandle[None], timeout: float | None) -> list[str]:
    found = []
    async for update in handle.watch(timeout):
        found.append(f"{update.state} {update.progress or ''}".strip())
    return found


async def test_reports_and_the_end_are_heard(
    queue: AsyncQueue, consumer: AsyncConsumer, server: EmbeddedRedis
) -> None:
    handle = await queue.send("t")
    (job,) = await apull(consumer, 1)
    async with AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            watching = together.start(seen, handle, None)
            await aoutside(monitor.wait_for, "XREAD", handle.id)
            for done in (3, 7):
                assert await report(queue, consumer, handle.id, done) == []
                await aoutside(monitor.wait_for, "XREAD", handle.id)
            await consumer.ack(job)
            heard = await watching.result(PATIENCE)
    assert heard == [
        "held",
        "held 3/10 (30%) pages",
        "held 7/10 (70%) pages",
        "done",
    ]
    # what is left of it goes with the word that the attempt is over
    await queue._run(commands.report(queue.keys, consumer.name, consumer.term, [], [handle.id]))
    assert await seen(handle, None) == ["done"]
    assert not await queue.redis.exists(queue.keys.progress(handle.id))


async def test_lines_are_there_once_and_bounded(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    handle = await queue.send("t")
    (job,) = await apull(consumer, 1)

    async def log(token: str, first: int, *lines: str) -> None:
        stored = [packed_line(1000, 20, line) for line in lines]
        said = [JobReport(handle.id, 1, b"", token, first, stored)]
        await queue._run(commands.report(queue.keys, consumer.name, consumer.term, said))

    await log("a", 1, "one", "two")
    await log("a", 1, "one", "two", "three")  # the reply was lost: they are sent again
    await log("a", 4, "four")
    await log("b", 1, "of another attempt")
    said = ["one", "two", "three", "four", "of another attempt"]
    await consumer.ack(job)
    watched = [update async for update in handle.watch()]
    lines = [(line.number, line.text) for update in watched for line in update.lines]
    assert lines == [*enumerate(said, 1)]
    assert [str(update.state) for update in watched] == ["done"]
    call = commands.report(queue.keys, consumer.name, consumer.term, [], [handle.id])
    await queue._run(call)
    assert 0 < await queue.redis.pttl(queue.keys.log(handle.id)) <= 600_000  # as its record


async def test_the_last_lines_are_kept(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    """1000 of them, or 100 KB; a watcher gets them by pages, also when the job has ended."""
    small, large = await queue.send("t"), await queue.send("t")
    jobs = await apull(consumer, 2)
    for first in (1, 501, 1001):
        lines = [packed_line(1000, 20, f"line {first + i}") for i in range(500)]
        wide = [packed_line(1000, 20, "x" * 1990) for _ in range(30)]
        said = [
            JobReport(small.id, 1, b"", "a", first, lines),
            JobReport(large.id, 1, b"", "a", first, wide),
        ]
        await queue._run(commands.report(queue.keys, consumer.name, consumer.term, said))
    kept = await queue.redis.llen(queue.keys.log(large.id))
    assert kept == 51  # with the one in which the last 100 KB begin
    await consumer.settle(ack=[job.id for job in jobs])
    updates = [update async for update in small.watch()]
    assert [len(update.lines) for update in updates[:5]] == [200] * 5
    assert [line.number for update in updates for line in update.lines] == [*range(501, 1501)]
    assert {str(update.state) for update in updates} == {"done"}


Ending = Callable[[AsyncQueue, AsyncConsumer, Delivery], Awaitable[object]]
ENDS: dict[str, Ending] = {
    "cancelled": lambda q, c, job: q.cancel(job.id),
    "dead": lambda q, c, job: c.reject(job, "why"),
    "done": lambda q, c, job: c.settle(ack=[job.id]),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_watch_ends_with_the_job_and_wakes_who_waits_too(
    queue: AsyncQueue, consumer: AsyncConsumer, server: EmbeddedRedis, end: str
) -> None:
    """Who waits for the result beside it, before or after, takes nothing from it."""
    handle = await queue.send("t")
    (job,) = await apull(consumer, 1)
    async with AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            first = together.start(seen, handle, None)
            await aoutside(monitor.wait_for, "XREAD", handle.id)
            waiting = together.start(seen_state, handle)
            await aoutside(monitor.wait_for, "BLMOVE", handle.id)
            second = together.start(seen, handle, None)
            await aoutside(monitor.wait_for, "XREAD", handle.id)
            await ENDS[end](queue, consumer, job)
            assert await first.result(PATIENCE) == ["held", end]
            assert await second.result(PATIENCE) == ["held", end]
            assert await waiting.result(PATIENCE) == end


@pytest.mark.parametrize("end", ENDS)
async def test_the_last_word_is_the_end(
    queue: AsyncQueue, consumer: AsyncConsumer, end: str
) -> None:
    """A report that was on its way when the job was done says nothing any more; of one that was
    not done it says how far it came."""
    handle = await queue.send("t")
    (job,) = await apull(consumer, 1)
    await report(queue, consumer, handle.id, 5)
    await ENDS[end](queue, consumer, job)
    came = "" if end == "done" else " 5/10 (50%) pages"
    assert await seen(handle, None) == [f"{end}{came}"]


async def seen_state(handle: AsyncJobHandle[None]) -> str:
    with suppress(ResultError):
        await handle.result()
    return str(await handle.state())


async def test_others_wake_nobody(
    queue: AsyncQueue, consumer: AsyncConsumer, server: EmbeddedRedis
) -> None:
    handle, other = await queue.send("t"), await queue.send("t")
    mine, job = await apull(consumer, 2)
    async with AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            watching = together.start(seen, handle, None)
            await aoutside(monitor.wait_for, "XREAD", handle.id)
            await report(queue, consumer, other.id, 5)
            await consumer.ack(job)
            await queue.send("t")
            await consumer.ack(mine)
            assert await watching.result(PATIENCE) == ["held", "done"]
            await queue.redis.ping()
            looks = await aoutside(commands_until_ping, monitor, handle.id)
    assert looks == 1  # for its end


def commands_until_ping(monitor: object, id: str) -> int:
    """How often the job was looked at."""
    count = 0
    while True:
        said = str(monitor._monitor.next_command()["command"])  # type: ignore[attr-defined]
        if said.upper() == "PING":
            return count
        count += said.startswith("EVALSHA") and said.endswith(f"{id} look 0")


async def test_only_who_holds_a_job_reports_for_it(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    """H-08."""
    await queue.pause()
    handle = await queue.send("t")
    assert await report(queue, consumer, handle.id, 1) == [handle.id]  # it waits
    await queue.resume()
    (job,) = await apull(consumer, 1)
    async with queue.consumer(renew=False) as another:
        assert await report(queue, another, handle.id, 1) == [handle.id]
    with pytest.raises(RegistrationLost):
        await report(queue, consumer, handle.id, 1, term="0")
    assert not await queue.redis.exists(queue.keys.progress(handle.id))
    assert await report(queue, consumer, handle.id, 2) == []
    assert 0 < await queue.redis.pttl(queue.keys.progress(handle.id)) <= 86_400_000
    # an attempt is over, and the job lives: how far that one came is known
    await consumer.retry(job)
    assert await report(queue, consumer, handle.id, 3, over=(handle.id,)) == [handle.id]
    assert await seen(handle, 0) == ["ready 2/10 (20%) pages"]
    found = await handle.progress()
    assert found is not None and (found.done, found.total) == (2, 10)


async def test_what_has_ended_is_seen_at_once(queue: AsyncQueue) -> None:
    handle = await queue.send("t")
    assert await seen(handle, 0) == ["ready"]
    assert await seen(handle, 0.05) == ["ready"]
    assert await handle.progress() is None
    await queue.cancel(handle.id)
    assert await seen(queue.job(handle.id), None) == ["cancelled"]
    with pytest.raises(UnknownJob):
        await seen(queue.job("none"), None)
    with pytest.raises(UnknownJob):
        await queue.job("none").progress()


async def test_a_watch_goes_on_behind_a_cut_connection(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy, private_server: EmbeddedRedis
) -> None:
    handle = await far.send("t")
    async with AsyncTogether() as together:
        with monitoring(private_server.url) as monitor:
            watching = together.start(seen, handle, 30)
            await aoutside(monitor.wait_for, "XREAD")
            proxy.cut()
            await aoutside(monitor.wait_for, "XREAD")
            await near.cancel(handle.id)
            assert await watching.result(PATIENCE) == ["ready", "cancelled"]
