"""Results: every state is told apart, nobody polls, nothing is consumed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis.asyncio

from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    InvalidName,
    JobCancelled,
    JobExpired,
    JobFailed,
    JobPurged,
    QueueDamaged,
    RedisOutOfMemory,
    ResultExpired,
    ResultNotReady,
    ResultTimeout,
    UnknownJob,
)
from rqueue.model.job import JobState
from rqueue.protocol.commands import Ran, Retried, note_running, purge
from rqueue.tasks.options import Options
from tests.support.both import AsyncTogether, aoutside
from tests.support.forked_program import ForkedProgram
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import apull, apull_one

pytestmark = pytest.mark.each_server


@pytest.mark.parametrize("value", [None, 0, False, "", "text", 1.5, [1, [2]], {"a": None}, "null"])
async def test_a_result_comes_back_and_stays(
    queue: AsyncQueue, consumer: AsyncConsumer, value: Any
) -> None:
    handle = await queue.send("t")
    await consumer.ack(await apull_one(consumer), value)
    assert await handle.result(0) == value
    assert await handle.result(PATIENCE) == value
    assert await queue.job(handle.id).result() == value
    assert await handle.state() is JobState.DONE


async def test_states_are_told_apart(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    await queue.pause()
    ready, later = await queue.send("t"), await queue.send("t", options=Options(delay_ms=60_000))
    for handle, state in ((ready, "ready"), (later, "scheduled")):
        assert await handle.state() == state
        with pytest.raises(ResultNotReady) as not_ready:
            await handle.result(0)
        assert not_ready.value.state == state
    await queue.resume()
    job = await apull_one(consumer)
    assert await ready.state() is JobState.HELD
    with pytest.raises(ResultNotReady, match="held"):
        await ready.result(0)
    await consumer.ack(job)
    assert await ready.state() is JobState.DONE

    unknown = queue.job("nobody-knows-me")
    assert await unknown.state() is JobState.UNKNOWN
    with pytest.raises(UnknownJob):
        await unknown.result(PATIENCE)
    assert await later.cancel()
    assert await later.state() is JobState.CANCELLED
    with pytest.raises(JobCancelled):
        await later.result(PATIENCE)
    with pytest.raises(InvalidName):
        queue.job("")


async def test_a_job_that_failed_shows_the_remote_traceback(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    handle = await queue.send("t")
    cause = {
        "type": "shop.errors.OutOfStock",
        "message": "no more tea",
        "traceback": 'Traceback (most recent call last):\n  File "shop.py", line 7, in order\n',
        "attempt": 3,
        "worker": "w1",
        "kind": "exception",
    }
    await consumer.settle(reject=[(await apull_one(consumer), cause)])
    assert await handle.state() is JobState.DEAD
    with pytest.raises(JobFailed) as failed:
        await handle.result(PATIENCE)
    error = failed.value
    assert (error.type, error.remote_message, error.attempts, error.worker, error.kind) == (
        "shop.errors.OutOfStock",
        "no more tea",
        3,
        "w1",
        "exception",
    )
    assert 'File "shop.py", line 7, in order' in str(error)
    assert "shop.errors.OutOfStock: no more tea" in str(error)


async def test_purged_and_not_kept(queue: AsyncQueue, consumer: AsyncConsumer) -> None:
    await queue.pause()
    handle = await queue.send("t")
    await queue._run(purge(queue.keys))
    assert await handle.state() is JobState.PURGED
    with pytest.raises(JobPurged):
        await handle.result()
    await queue.resume()

    handle = await queue.send("t")
    job = await apull_one(consumer)
    call = consumer._settle_call(consumer._settled((), [(job, 5)], (), (), (), b"", 0), None)
    at = call.args.index(b"5")
    call.args[at - 1] = 0  # type: ignore[index]  # keep for 0 ms
    await consumer._run(call)
    assert await handle.state() is JobState.DONE
    with pytest.raises(ResultExpired):
        await handle.result(PATIENCE)


@pytest.mark.parametrize("expired", ["end", "dead"])
async def test_an_expired_job_has_no_result(
    queue: AsyncQueue, consumer: AsyncConsumer, expired: Any
) -> None:
    """Whether it ended or is a dead letter (Q-62)."""
    await queue.configure(ttl="1h", ttl_max=7200, expired=expired)
    await queue.pause()
    handle = await queue.send("t", options=Options(ttl=60))
    other = await queue.send("t")
    await queue.redis.hincrby(queue.keys.meta, "clock", 61_000)
    await queue.resume()
    assert (await apull_one(consumer)).id == other.id
    assert await handle.state() is (JobState.DEAD if expired == "dead" else JobState.EXPIRED)
    with pytest.raises(JobExpired, match="its time to live ended"):
        await handle.result(PATIENCE)


async def test_a_time_out_names_the_state(queue: AsyncQueue) -> None:
    handle = await queue.send("t")
    with pytest.raises(ResultTimeout) as error:
        await handle.result(0.05)
    assert isinstance(error.value, TimeoutError)
    assert (error.value.id, error.value.timeout, error.value.state) == (handle.id, 0.05, "ready")
    assert error.value.url.startswith("unix:///") and f"({error.value.url})" in str(error.value)


async def test_a_time_out_says_what_the_job_does(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    handle = await queue.send("t")

    async def said() -> str:
        with pytest.raises(ResultTimeout) as error:
            await handle.result(0.01)
        assert f": {error.value.reason}" in str(error.value)
        with pytest.raises(ResultNotReady) as not_ready:
            await handle.result(0)
        reasons = [re.sub(r"[\d.]+ s$", "", found.value.reason) for found in (error, not_ready)]
        assert reasons[0] == reasons[1], "nothing passes meanwhile but time"
        return error.value.reason

    job = await apull_one(consumer)
    assert await said() == f"consumer '{consumer.name}' has it"
    now = (await queue.counts()).now
    await queue._run(note_running(queue.keys, consumer.name, [Ran(job.id, 1, now)]))
    assert (await said()).startswith(
        f"consumer '{consumer.name}' has it, and has been running it for "
    )
    boom = orjson.dumps({"type": "ValueError", "message": "boom\n  there", "traceback": "x\ny"})
    await consumer.settle(retry=[Retried(job.id, 60_000, "head", True, boom)])
    assert re.fullmatch(
        r"attempt 1 failed \(ValueError: boom there\); it is tried again in (60|59\.\d) s",
        await said(),
    )
    await queue.promote(job.id)
    assert await said() == "attempt 1 failed (ValueError: boom there)"
    job = await apull_one(consumer)
    assert (
        await said()
        == f"attempt 1 failed (ValueError: boom there); consumer '{consumer.name}' has it"
    )
    await consumer.settle(retry=[Retried(job.id, 0, "head", True, b"no json")])
    await consumer.close()
    assert await said() == f"attempt 2 failed; no worker serves queue '{queue.name}'"


async def test_the_wait_for_what_cannot_come_ends_at_once(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    for _ in range(2):
        with pytest.raises(UnknownJob):
            await queue.job("never").result()
    # what said so is no answer for the job that has the id later
    handle = await queue.send("t", options=Options(id="never"))
    await consumer.ack(await apull_one(consumer), "late")
    assert await handle.result() == "late"


async def test_a_wait_that_is_refused_leaves_nothing_behind(
    queue: AsyncQueue, consumer: AsyncConsumer
) -> None:
    handle = await queue.send("t")
    await consumer.ack(await apull_one(consumer), 7)
    await queue.redis.set(queue.keys.result(handle.id), "not ours")
    with pytest.raises(QueueDamaged, match="is a string"):
        await handle.result()
    await queue.redis.delete(queue.keys.result(handle.id))
    assert await handle.result() == 7


async def test_a_wait_teaches_a_server_the_script_that_it_forgot(
    queue: AsyncQueue, consumer: AsyncConsumer, server: EmbeddedRedis
) -> None:
    handle = await queue.send("t")
    job = await apull_one(consumer)
    await queue.redis.script_flush()
    async with AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            waiting = together.start(handle.result)
            await aoutside(monitor.wait_for, "BLMOVE", handle.id)
            await consumer.ack(job, 7)
            assert await waiting.result(PATIENCE) == 7
    await queue.redis.script_flush()
    assert await handle.result() == 7


async def test_a_result_can_be_waited_for_while_memory_is_short(
    make_server: Callable[..., EmbeddedRedis],
) -> None:
    server = make_server()
    async with (
        AsyncQueue("q", server.url) as queue,
        queue.consumer(jobs=2, renew=False) as consumer,
    ):
        early, late = await queue.send("t"), await queue.send("t")
        jobs = await apull(consumer, 2)
        await consumer.ack(jobs[0], 1)
        await queue.redis.config_set("maxmemory", 1)
        assert await early.result() == await early.result(0) == 1
        with pytest.raises(RedisOutOfMemory):
            await late.result(PATIENCE)


async def test_several_waiters_wait_without_polling(
    queue: AsyncQueue, consumer: AsyncConsumer, server: EmbeddedRedis
) -> None:
    handle = await queue.send("t")
    job = await apull_one(consumer)
    before = await _blocked_so_far(queue)
    async with AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            waiting = [together.start(handle.result, 30) for _ in range(5)]
            await aoutside(monitor.wait_for, "BLMOVE", handle.id, times=5)
            await consumer.ack(job, "tea")
            assert [await started.result(PATIENCE) for started in waiting] == ["tea"] * 5
    assert await _blocked_so_far(queue) == before + 5  # each waited once, and asked no more
    assert await handle.result(0) == "tea"


async def _blocked_so_far(queue: AsyncQueue) -> int:
    stats = await queue.redis.info("commandstats")
    return int(stats.get("cmdstat_blmove", {}).get("calls", 0))


async def test_the_end_of_a_failed_a_cancelled_and_a_late_job_wakes_who_waits(
    queue: AsyncQueue, consumer: AsyncConsumer, server: EmbeddedRedis
) -> None:
    failing, cancelled = await queue.send("t"), await queue.send("t")
    jobs = await apull(consumer, 2)
    async with AsyncTogether() as together:
        with monitoring(server.url) as monitor:
            waiting = [together.start(handle.result, 30) for handle in (failing, cancelled)]
            await aoutside(monitor.wait_for, "BLMOVE", times=2)
            await consumer.reject(jobs[0], "broken")
            await cancelled.cancel()
            with pytest.raises(JobFailed, match="broken"):
                await waiting[0].result(PATIENCE)
            with pytest.raises(JobCancelled):
                await waiting[1].result(PATIENCE)


async def test_a_waiter_in_another_process(
    queue: AsyncQueue,
    consumer: AsyncConsumer,
    server: EmbeddedRedis,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    handle = await queue.send("t")
    program = (
        "import sys; from rqueue import Queue\n"
        "print(Queue(sys.argv[1], sys.argv[2]).job(sys.argv[3]).result(60))"
    )
    with monitoring(server.url) as monitor:
        output = tmp_path / "said"
        with output.open("wb") as written:
            code = (program, queue.name, server.url, handle.id)
            process = ForkedProgram("tests.support.run_code", *code, output=written)
        request.addfinalizer(process.kill)
        await aoutside(monitor.wait_for, "BLMOVE", handle.id)
        await consumer.ack(await apull_one(consumer), [1, 2])
        assert await aoutside(process.wait, PATIENCE) == 0
    assert output.read_text() == "[1, 2]\n"


async def test_a_wait_survives_a_cut_connection_and_a_restart(
    far: AsyncQueue, near: AsyncQueue, proxy: Proxy, private_server: EmbeddedRedis
) -> None:
    handle = await far.send("t")
    async with near.consumer(jobs=1, renew=False) as consumer, AsyncTogether() as together:
        (job,) = await consumer.pull()
        with monitoring(private_server.url) as monitor:
            waiting = together.start(handle.result, 30)
            await aoutside(monitor.wait_for, "BLMOVE")
            proxy.cut()
            await aoutside(monitor.wait_for, "BLMOVE")  # it came back by itself
            proxy.cut_reply(7)  # in the middle of the answer
            await consumer.ack(job, {"a": 1})
            assert await waiting.result(PATIENCE) == {"a": 1}


async def test_a_client_of_the_users_with_little_patience(
    queue: AsyncQueue, consumer: AsyncConsumer, server: EmbeddedRedis
) -> None:
    """Its socket time-out is shorter than our blocked command would be."""
    handle = await queue.send("t")
    async with redis.asyncio.Redis.from_url(server.url, socket_timeout=0.5) as client:
        impatient = AsyncQueue(queue.name, redis=client)
        async with AsyncTogether() as together:
            with monitoring(server.url) as monitor:
                waiting = together.start(impatient.job(handle.id).result, 30)
                await aoutside(monitor.wait_for, "BLMOVE", times=3)
                await consumer.ack(await apull_one(consumer), 7)
                assert await waiting.result(PATIENCE) == 7
        await impatient.close()


async def test_handles_say_what_they_are(
    queue: AsyncQueue, make_server: Callable[..., EmbeddedRedis]
) -> None:
    handle = await queue.send("t")
    assert handle.queue == queue.name
    assert handle.id in repr(handle)
    assert queue.name in repr(queue)


async def test_the_shortest_wait_ends(queue: AsyncQueue) -> None:
    """Redis 6.2 takes a wait of 1 ms for one without an end."""
    job = await queue.send("t")
    for timeout in (0.00001, 0.0011):
        with pytest.raises(ResultTimeout):
            await job.result(timeout)
