# Generated from tests/client/_async/test_results.py (`make generate`): do not edit.
"""Results: every state is told apart, nobody polls, nothing is consumed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
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
from tests.support.both import Together, outside
from tests.support.forked_program import ForkedProgram
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import pull, pull_one

pytestmark = pytest.mark.each_server


@pytest.mark.parametrize("value", [None, 0, False, "", "text", 1.5, [1, [2]], {"a": None}, "null"])
def test_a_result_comes_back_and_stays(queue: Queue, consumer: Consumer, value: Any) -> None:
    handle = queue.send("t")
    consumer.ack(pull_one(consumer), value)
    assert handle.result(0) == value
    assert handle.result(PATIENCE) == value
    assert queue.job(handle.id).result() == value
    assert handle.state() is JobState.DONE


def test_states_are_told_apart(queue: Queue, consumer: Consumer) -> None:
    queue.pause()
    ready, later = queue.send("t"), queue.send("t", options=Options(delay_ms=60_000))
    for handle, state in ((ready, "ready"), (later, "scheduled")):
        assert handle.state() == state
        with pytest.raises(ResultNotReady) as not_ready:
            handle.result(0)
        assert not_ready.value.state == state
    queue.resume()
    job = pull_one(consumer)
    assert ready.state() is JobState.HELD
    with pytest.raises(ResultNotReady, match="held"):
        ready.result(0)
    consumer.ack(job)
    assert ready.state() is JobState.DONE

    unknown = queue.job("nobody-knows-me")
    assert unknown.state() is JobState.UNKNOWN
    with pytest.raises(UnknownJob):
        unknown.result(PATIENCE)
    assert later.cancel()
    assert later.state() is JobState.CANCELLED
    with pytest.raises(JobCancelled):
        later.result(PATIENCE)
    with pytest.raises(InvalidName):
        queue.job("")


def test_a_job_that_failed_shows_the_remote_traceback(queue: Queue, consumer: Consumer) -> None:
    handle = queue.send("t")
    cause = {
        "type": "shop.errors.OutOfStock",
        "message": "no more tea",
        "traceback": 'Traceback (most recent call last):\n  File "shop.py", line 7, in order\n',
        "attempt": 3,
        "worker": "w1",
        "kind": "exception",
    }
    consumer.settle(reject=[(pull_one(consumer), cause)])
    assert handle.state() is JobState.DEAD
    with pytest.raises(JobFailed) as failed:
        handle.result(PATIENCE)
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


def test_purged_and_not_kept(queue: Queue, consumer: Consumer) -> None:
    queue.pause()
    handle = queue.send("t")
    queue._run(purge(queue.keys))
    assert handle.state() is JobState.PURGED
    with pytest.raises(JobPurged):
        handle.result()
    queue.resume()

    handle = queue.send("t")
    job = pull_one(consumer)
    call = consumer._settle_call(consumer._settled((), [(job, 5)], (), (), (), b"", 0), None)
    at = call.args.index(b"5")
    call.args[at - 1] = 0  # type: ignore[index]  # keep for 0 ms
    consumer._run(call)
    assert handle.state() is JobState.DONE
    with pytest.raises(ResultExpired):
        handle.result(PATIENCE)


@pytest.mark.parametrize("expired", ["end", "dead"])
def test_an_expired_job_has_no_result(queue: Queue, consumer: Consumer, expired: Any) -> None:
    """Whether it ended or is a dead letter (Q-62)."""
    queue.configure(ttl="1h", ttl_max=7200, expired=expired)
    queue.pause()
    handle = queue.send("t", options=Options(ttl=60))
    other = queue.send("t")
    queue.redis.hincrby(queue.keys.meta, "clock", 61_000)
    queue.resume()
    assert (pull_one(consumer)).id == other.id
    assert handle.state() is (JobState.DEAD if expired == "dead" else JobState.EXPIRED)
    with pytest.raises(JobExpired, match="its time to live ended"):
        handle.result(PATIENCE)


def test_a_time_out_names_the_state(queue: Queue) -> None:
    handle = queue.send("t")
    with pytest.raises(ResultTimeout) as error:
        handle.result(0.05)
    assert isinstance(error.value, TimeoutError)
    assert (error.value.id, error.value.timeout, error.value.state) == (handle.id, 0.05, "ready")
    assert error.value.url.startswith("unix:///") and f"({error.value.url})" in str(error.value)


def test_a_time_out_says_what_the_job_does(queue: Queue, consumer: Consumer) -> None:
    handle = queue.send("t")

    def said() -> str:
        with pytest.raises(ResultTimeout) as error:
            handle.result(0.01)
        assert f": {error.value.reason}" in str(error.value)
        with pytest.raises(ResultNotReady) as not_ready:
            handle.result(0)
        reasons = [re.sub(r"[\d.]+ s$", "", found.value.reason) for found in (error, not_ready)]
        assert reasons[0] == reasons[1], "nothing passes meanwhile but time"
        return error.value.reason

    job = pull_one(consumer)
    assert said() == f"consumer '{consumer.name}' has it"
    now = (queue.counts()).now
    queue._run(note_running(queue.keys, consumer.name, [Ran(job.id, 1, now)]))
    assert (said()).startswith(f"consumer '{consumer.name}' has it, and has been running it for ")
    boom = orjson.dumps({"type": "ValueError", "message": "boom\n  there", "traceback": "x\ny"})
    consumer.settle(retry=[Retried(job.id, 60_000, "head", True, boom)])
    assert re.fullmatch(
        r"attempt 1 failed \(ValueError: boom there\); it is tried again in (60|59\.\d) s",
        said(),
    )
    queue.promote(job.id)
    assert said() == "attempt 1 failed (ValueError: boom there)"
    job = pull_one(consumer)
    assert said() == f"attempt 1 failed (ValueError: boom there); consumer '{consumer.name}' has it"
    consumer.settle(retry=[Retried(job.id, 0, "head", True, b"no json")])
    consumer.close()
    assert said() == f"attempt 2 failed; no worker serves queue '{queue.name}'"


def test_the_wait_for_what_cannot_come_ends_at_once(queue: Queue, consumer: Consumer) -> None:
    for _ in range(2):
        with pytest.raises(UnknownJob):
            queue.job("never").result()
    # what said so is no answer for the job that has the id later
    handle = queue.send("t", options=Options(id="never"))
    consumer.ack(pull_one(consumer), "late")
    assert handle.result() == "late"


def test_a_wait_that_is_refused_leaves_nothing_behind(queue: Queue, consumer: Consumer) -> None:
    handle = queue.send("t")
    consumer.ack(pull_one(consumer), 7)
    queue.redis.set(queue.keys.result(handle.id), "not ours")
    with pytest.raises(QueueDamaged, match="is a string"):
        handle.result()
    queue.redis.delete(queue.keys.result(handle.id))
    assert handle.result() == 7


def test_a_wait_teaches_a_server_the_script_that_it_forgot(
    queue: Queue, consumer: Consumer, server: EmbeddedRedis
) -> None:
    handle = queue.send("t")
    job = pull_one(consumer)
    queue.redis.script_flush()
    with Together() as together:
        with monitoring(server.url) as monitor:
            waiting = together.start(handle.result)
            outside(monitor.wait_for, "BLMOVE", handle.id)
            consumer.ack(job, 7)
            assert waiting.result(PATIENCE) == 7
    queue.redis.script_flush()
    assert handle.result() == 7


def test_a_result_can_be_waited_for_while_memory_is_short(
    make_server: Callable[..., EmbeddedRedis],
) -> None:
    server = make_server()
    with (
        Queue("q", server.url) as queue,
        queue.consumer(jobs=2, renew=False) as consumer,
    ):
        early, late = queue.send("t"), queue.send("t")
        jobs = pull(consumer, 2)
        consumer.ack(jobs[0], 1)
        queue.redis.config_set("maxmemory", 1)
        assert early.result() == early.result(0) == 1
        with pytest.raises(RedisOutOfMemory):
            late.result(PATIENCE)


def test_several_waiters_wait_without_polling(
    queue: Queue, consumer: Consumer, server: EmbeddedRedis
) -> None:
    handle = queue.send("t")
    job = pull_one(consumer)
    before = _blocked_so_far(queue)
    with Together() as together:
        with monitoring(server.url) as monitor:
            waiting = [together.start(handle.result, 30) for _ in range(5)]
            outside(monitor.wait_for, "BLMOVE", handle.id, times=5)
            consumer.ack(job, "tea")
            assert [started.result(PATIENCE) for started in waiting] == ["tea"] * 5
    assert _blocked_so_far(queue) == before + 5  # each waited once, and asked no more
    assert handle.result(0) == "tea"


def _blocked_so_far(queue: Queue) -> int:
    stats = queue.redis.info("commandstats")
    return int(stats.get("cmdstat_blmove", {}).get("calls", 0))


def test_the_end_of_a_failed_a_cancelled_and_a_late_job_wakes_who_waits(
    queue: Queue, consumer: Consumer, server: EmbeddedRedis
) -> None:
    failing, cancelled = queue.send("t"), queue.send("t")
    jobs = pull(consumer, 2)
    with Together() as together:
        with monitoring(server.url) as monitor:
            waiting = [together.start(handle.result, 30) for handle in (failing, cancelled)]
            outside(monitor.wait_for, "BLMOVE", times=2)
            consumer.reject(jobs[0], "broken")
            cancelled.cancel()
            with pytest.raises(JobFailed, match="broken"):
                waiting[0].result(PATIENCE)
            with pytest.raises(JobCancelled):
                waiting[1].result(PATIENCE)


def test_a_waiter_in_another_process(
    queue: Queue,
    consumer: Consumer,
    server: EmbeddedRedis,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    handle = queue.send("t")
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
        outside(monitor.wait_for, "BLMOVE", handle.id)
        consumer.ack(pull_one(consumer), [1, 2])
        assert outside(process.wait, PATIENCE) == 0
    assert output.read_text() == "[1, 2]\n"


def test_a_wait_survives_a_cut_connection_and_a_restart(
    far: Queue, near: Queue, proxy: Proxy, private_server: EmbeddedRedis
) -> None:
    handle = far.send("t")
    with near.consumer(jobs=1, renew=False) as consumer, Together() as together:
        (job,) = consumer.pull()
        with monitoring(private_server.url) as monitor:
            waiting = together.start(handle.result, 30)
            outside(monitor.wait_for, "BLMOVE")
            proxy.cut()
            outside(monitor.wait_for, "BLMOVE")  # it came back by itself
            proxy.cut_reply(7)  # in the middle of the answer
            consumer.ack(job, {"a": 1})
            assert waiting.result(PATIENCE) == {"a": 1}


def test_a_client_of_the_users_with_little_patience(
    queue: Queue, consumer: Consumer, server: EmbeddedRedis
) -> None:
    """Its socket time-out is shorter than our blocked command would be."""
    handle = queue.send("t")
    with redis.Redis.from_url(server.url, socket_timeout=0.5) as client:
        impatient = Queue(queue.name, redis=client)
        with Together() as together:
            with monitoring(server.url) as monitor:
                waiting = together.start(impatient.job(handle.id).result, 30)
                outside(monitor.wait_for, "BLMOVE", times=3)
                consumer.ack(pull_one(consumer), 7)
                assert waiting.result(PATIENCE) == 7
        impatient.close()


def test_handles_say_what_they_are(queue: Queue, make_server: Callable[..., EmbeddedRedis]) -> None:
    handle = queue.send("t")
    assert handle.queue == queue.name
    assert handle.id in repr(handle)
    assert queue.name in repr(queue)


def test_the_shortest_wait_ends(queue: Queue) -> None:
    """Redis 6.2 takes a wait of 1 ms for one without an end."""
    job = queue.send("t")
    for timeout in (0.00001, 0.0011):
        with pytest.raises(ResultTimeout):
            job.result(timeout)
