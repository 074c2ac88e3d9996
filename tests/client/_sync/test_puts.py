# Generated from tests/client/_async/test_puts.py (`make generate`): do not edit.
"""Background puts: nothing lost, nothing doubled, nothing out of order, and no polling."""

import logging
import time
from functools import partial
from typing import Any

import pytest

from rqueue.client._sync.putter import BackgroundPuts
from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    BadArguments,
    BufferClosed,
    BufferFull,
    ConfigError,
    LifecycleError,
    NotEncodable,
    RedisUnavailable,
    ResultTimeout,
    WrongServer,
)
from rqueue.protocol.commands import Put
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from tests.support.both import Together, outside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import pull_one

registry = Registry()


@task(name="add", registry=registry)
def add(a: int, b: int = 0) -> int:
    return a + b


def waiting_ids(queue: Queue) -> list[str]:
    """Ids of the jobs that wait, in their order."""
    with queue.consumer(jobs=500, mode="browse", renew=False) as browser:
        return [job.id for job in browser.flush()]


def test_jobs_are_stored_in_order(queue: Queue, putter: BackgroundPuts) -> None:
    handles = [putter.put(add, i, b=1) for i in range(2000)]
    assert putter.flush(20)
    assert waiting_ids(queue) == [handle.id for handle in handles]
    assert all(handle.stored and handle.created for handle in handles)
    assert (putter.pending, putter.failed) == (0, 0)
    assert putter.flush(0)


def test_a_put_returns_before_redis_answers(far: Queue, proxy: Proxy, near: Queue) -> None:
    with far.putter() as putter:
        proxy.hold()
        handle = putter.put("t", 1)
        assert (putter.pending, handle.stored) == (1, False)
        assert not putter.flush(0.05)
        assert not handle.wait_stored(0.01)
        with pytest.raises(ResultTimeout, match="not stored yet"):
            handle.result(0.01)
        proxy.release()
        assert handle.wait_stored(20)
        assert handle.stored
    assert waiting_ids(near) == [handle.id]


def test_batches_are_made_by_size_and_by_time(queue: Queue, server: EmbeddedRedis) -> None:
    with monitoring(server.url) as monitor:
        with queue.putter(batch=10, linger=60) as putter:
            for _ in range(10):
                putter.put("t")
            outside(monitor.wait_for, "EVALSHA", "4,,0,10")  # full: no lingering
            for _ in range(3):
                putter.put("t")
            assert putter.flush(20)  # nor with a flush
            outside(monitor.wait_for, "EVALSHA", "4,,0,3")
        with queue.putter(linger=0.02) as putter:
            putter.put("t")
            outside(monitor.wait_for, "EVALSHA", "4,,0,1")


def test_options_travel(queue: Queue, putter: BackgroundPuts) -> None:
    putter.put(add.options(priority=9), 1)
    putter.put(add, 2)
    putter.put_call(Call("t", options=Options(delay_ms=60_000, id="later", max_deliveries=2)))
    putter.put_call(Call(add, (3,)))
    handle = add.options(sender=putter).enqueue(4)
    assert handle.queue == queue.name
    assert putter.flush(20)
    counts = queue.counts()
    assert (counts.scheduled, counts.levels) == (1, {9: 1, 4: 3})
    assert handle.id in waiting_ids(queue)
    with pytest.raises(LifecycleError, match="goes to queue 'other'"):
        add.options(sender=putter, queue="other").enqueue(4)


def test_what_cannot_be_packed_is_refused_at_once(putter: BackgroundPuts) -> None:
    with pytest.raises(NotEncodable):
        putter.put("t", b"x")
    with pytest.raises(BadArguments):
        putter.put(add, 1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="immediate"):
        putter.put_call(Call("t", options=Options(immediate=True)))
    with pytest.raises(ConfigError):
        putter.queue.putter(batch=0)
    with pytest.raises(ConfigError):
        putter.queue.putter(limit=0)
    assert putter.flush(0)  # C-11: they do not count


def test_arguments_are_taken_as_they_are_at_the_put(queue: Queue, putter: BackgroundPuts) -> None:
    args = [1]
    putter.put("t", args)
    args.append(2)
    putter.flush()
    with queue.consumer(renew=False) as consumer:
        assert b"[1]" in (pull_one(consumer)).body


def test_results_wait_for_the_store_first(queue: Queue, putter: BackgroundPuts) -> None:
    handle = putter.put(add, 1, b=2)
    with Together() as together, queue.consumer(renew=False) as consumer:
        result = together.start(handle.result, 20)
        consumer.ack(pull_one(consumer), 3)
        assert result.result(PATIENCE) == 3
    other = putter.put("t")
    assert other.cancel()


def test_known_ids(queue: Queue, putter: BackgroundPuts) -> None:
    queue.send("t", options=Options(id="a"))
    handles = [putter.put_call(Call("t", options=Options(id=id_))) for id_ in "aba"]
    assert putter.flush(20)
    assert [handle.created for handle in handles] == [False, True, False]
    assert waiting_ids(queue) == ["a", "b"]


# -- listeners -------------------------------------------------------------------------------------


def test_listeners_hear_of_every_job_once_in_order(queue: Queue, putter: BackgroundPuts) -> None:
    heard: list[tuple[str, str]] = []

    def broken(handle: Any) -> None:
        raise RuntimeError("a listener's own fault")

    putter.add_listener(lambda handle: heard.append(("first", handle.id)))
    putter.add_listener(broken)
    putter.add_listener(lambda handle: heard.append(("second", handle.id)))
    handles = [putter.put("t") for _ in range(700)]
    assert putter.close() == []
    assert heard == [(name, handle.id) for handle in handles for name in ("first", "second")]


def test_jobs_that_cannot_be_stored_are_reported(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    reported: list[tuple[Exception, list[Put]]] = []
    queue.redis.hset(queue.keys.meta, "v", "99")  # of another version
    with queue.putter(on_error=lambda error, puts: reported.append((error, puts))) as putter:
        handle = putter.put_call(Call("t", (1,), options=Options(priority=7, delay_ms=5)))
        other = putter.put("t")
        assert putter.flush(20)  # C-13: what was refused is finished
        assert isinstance(handle.error, WrongServer)
        assert (handle.stored, putter.failed, putter.pending) == (False, 2, 0)
        for wait in (handle.result, handle.wait_stored, handle.cancel):
            with pytest.raises(WrongServer):
                wait()
    # the second may be in the same batch or in one of its own
    assert all(isinstance(error, WrongServer) for error, _ in reported)
    puts = [put for _, batch in reported for put in batch]
    assert [(put.id, put.priority, put.delay_ms) for put in puts] == [
        (handle.id, 7, 5),
        (other.id, 4, 0),
    ]
    queue.redis.hset(queue.keys.meta, "v", "1")
    assert (queue.enqueue_puts(puts)).accepted == 2

    queue.redis.hset(queue.keys.meta, "v", "99")
    with caplog.at_level(logging.ERROR, "rqueue"):
        with queue.putter() as putter:
            lost = putter.put("t")
            putter.flush()
    assert "1 job for queue" in caplog.text
    assert lost.id in caplog.text


# -- the bounded buffer ----------------------------------------------------------------------------


def test_a_full_buffer_blocks_until_there_is_room(far: Queue, near: Queue, proxy: Proxy) -> None:
    with far.putter(limit=3, linger=60) as putter:
        proxy.hold()
        for _ in range(3):
            putter.put("t")
        start = time.monotonic()
        with pytest.raises(BufferFull, match=r"\(3 jobs\) stayed full for 0.05 s"):
            putter.put_call(Call("t"), timeout=0.05)
        assert 0.05 <= time.monotonic() - start < 20
        with pytest.raises(BufferFull):
            putter.put_call(Call("t"), timeout=0)
        with Together() as together:
            blocked = [together.start(putter.put, "t") for _ in range(4)]
            proxy.release()
            assert all([started.result(PATIENCE) for started in blocked])
        assert putter.flush(20)
    assert len(waiting_ids(near)) == 7


def test_a_buffer_is_bounded_in_bytes_too(far: Queue, proxy: Proxy) -> None:
    with far.putter(limit_bytes=1000, timeout=0.02) as putter:
        proxy.hold()
        putter.put("t", "x" * 5000)  # larger than the buffer: it passes alone
        with pytest.raises(BufferFull):
            putter.put("t")
        proxy.release()
        assert putter.flush(20)
        putter.put("t", "x" * 400)
        putter.put("t", "x" * 400)


def test_the_deadline_is_a_total(far: Queue, proxy: Proxy) -> None:
    """Room that others take does not start it again (C-10)."""
    with far.putter(limit=1, batch=1) as putter:
        proxy.hold()
        putter.put("t")
        with Together() as together:
            start = time.monotonic()
            put = partial(putter.put_call, timeout=0.2)
            blocked = [together.start(put, Call("t")) for _ in range(3)]
            for started in blocked:
                with pytest.raises(BufferFull):
                    started.result(PATIENCE)
            assert time.monotonic() - start < 20
        proxy.release()


# -- life ------------------------------------------------------------------------------------------


def test_close_says_what_could_not_be_stored(far: Queue, near: Queue, proxy: Proxy) -> None:
    reported: list[tuple[Exception, list[Put]]] = []
    far.send("t")
    putter = far.putter(on_error=lambda error, puts: reported.append((error, puts)))
    proxy.refuse()
    handles = [putter.put("t", i) for i in range(3)]
    left = putter.close(timeout=0.1)
    assert [put.id for put in left] == [handle.id for handle in handles]
    assert [puts for _, puts in reported] == [left]
    assert isinstance(reported[0][0], RedisUnavailable)
    with pytest.raises(RedisUnavailable):
        handles[0].wait_stored()
    assert (near.enqueue_puts(left)).accepted == 3

    proxy.accept()
    with pytest.raises(LifecycleError, match="1 job for queue"):
        with far.putter() as putter:
            putter.put("t")
            putter.flush()
            proxy.refuse()
            putter.put("t")
            close = putter.close
            putter.close = lambda: close(0.05)  # type: ignore


def test_close_does_not_wait_for_a_silent_server(far: Queue, near: Queue, proxy: Proxy) -> None:
    """The batch may have been stored: it is returned, under the same ids."""
    putter = far.putter()
    putter.put("t")
    putter.flush()
    proxy.hold()
    with monitoring(near.settings.url or "") as monitor:
        handle = putter.put("t")
        outside(monitor.wait_for, "EVALSHA", handle.id)
    start = time.monotonic()
    left = putter.close(timeout=0.05)
    assert time.monotonic() - start < 15  # the time-out for a reply
    assert [put.id for put in left] == [handle.id]
    assert (near.enqueue_puts(left)).accepted == 0
    assert len(waiting_ids(near)) == 2


def test_close_lets_go_of_who_waits_for_room(far: Queue, proxy: Proxy) -> None:
    putter = far.putter(limit=1)
    proxy.hold()
    putter.put("t")
    with Together() as together:
        blocked = together.start(putter.put, "t")
        assert not blocked.done()
        putter.close(0.05)
        with pytest.raises(BufferClosed):
            blocked.result(PATIENCE)


@pytest.mark.parametrize("after", [0, 3, 10])
def test_a_lost_reply_doubles_nothing(far: Queue, near: Queue, proxy: Proxy, after: int) -> None:
    with far.putter() as putter:
        putter.put("t")
        assert putter.flush(20)
        proxy.cut_reply(after)
        handles = [putter.put("t", i) for i in range(20)]
        mine = putter.put_call(Call("t", options=Options(id="mine")))
        assert putter.flush(20)
        assert proxy.wait_cut()
        assert all(handle.created for handle in (*handles, mine))
    assert len(waiting_ids(near)) == 22


def test_an_outage_is_waited_for(
    far: Queue, near: Queue, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rqueue"):
        with far.putter() as putter:
            handles = [putter.put("t", i) for i in range(10)]
            proxy.refuse()
            handles += [putter.put("t", i) for i in range(600)]
            assert not putter.flush(0.3)
            assert putter.pending > 0
            proxy.accept()
            assert putter.flush(20)
            assert putter.failed == 0
    assert waiting_ids(near) == [handle.id for handle in handles]
    said = [record.getMessage() for record in caplog.records]
    assert len([text for text in said if "wait for Redis" in text]) == 1
    assert len([text for text in said if "go on" in text]) == 1


def test_a_server_out_of_memory_is_waited_for(make_server: Any, queue_name: str) -> None:
    server = make_server(config={"maxmemory": "4mb"})
    with Queue(queue_name, server.url) as queue, queue.putter(batch=10) as putter:
        handles = [putter.put("t", "x" * 50_000) for _ in range(100)]
        assert not putter.flush(1)
        assert putter.pending
        queue.redis.config_set("maxmemory", "100mb")
        assert putter.flush(20)
        assert waiting_ids(queue) == [handle.id for handle in handles]


# -- forks and the end of the process --------------------------------------------------------------


def test_an_error_listener_that_does_not_take_what_it_is_given(queue: Queue) -> None:
    """Else that would show when jobs are lost by it."""
    with pytest.raises(ConfigError, match=r"on_error: it takes \(error\), .* write def on_error\("):
        queue.putter(on_error=lambda error: None)  # type: ignore[arg-type, misc]
    with queue.putter() as putter:
        with pytest.raises(ConfigError, match="on_error: 5 is no function"):
            putter.add_error_listener(5)  # type: ignore[arg-type]
