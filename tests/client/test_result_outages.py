"""Who waits for a result goes on waiting while Redis is gone: sync and asyncio, until the time is
over."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConnectionLost, UnknownJob
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.result_waits import LONGER_THAN_A_CALL_TRIES_S, WAITS, Waits

pytestmark = pytest.mark.parametrize("waits", WAITS)


def _still_waits(waiting: "Future[Any]", seconds: float = LONGER_THAN_A_CALL_TRIES_S) -> None:
    with pytest.raises(TimeoutError):
        waiting.result(seconds)


@pytest.mark.parametrize("timeout", [30, None])
def test_a_wait_goes_on_through_a_restart(
    waits: Waits,
    timeout: float | None,
    make_server: Callable[..., EmbeddedRedis],
    queue_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = make_server(port=0, config={"appendonly": "yes", "appendfsync": "always"})
    url = server.tcp_url or ""
    with Queue(queue_name, url) as queue, ThreadPoolExecutor(1) as threads:
        job = queue.send("t")
        with monitoring(url) as monitor:
            waiting = threads.submit(waits, url, queue_name, job.id, timeout)
            monitor.wait_for("BLMOVE", job.id)
        with caplog.at_level(logging.WARNING, "rqueue"):
            server.kill()
            _still_waits(waiting)
            server.start()
        with queue.consumer(jobs=1, renew=False) as consumer:
            (held,) = consumer.pull()
            consumer.ack(held, "found")
        assert waiting.result(PATIENCE) == "found"
    # a wait without an end logs why it takes so long, once
    logged = [said for said in caplog.messages if f"the wait for job {job.id} goes on" in said]
    assert len(logged) == (1 if timeout is None else 0)


def test_a_server_that_lost_the_job_says_so(
    waits: Waits, make_server: Callable[..., EmbeddedRedis], queue_name: str
) -> None:
    # what it has answered outlasts its death, the flush too
    server = make_server(port=0, config={"appendfsync": "always"})
    url = server.tcp_url or ""
    with Queue(queue_name, url) as queue, ThreadPoolExecutor(1) as threads:
        job = queue.send("t")
        with monitoring(url) as monitor:
            waiting = threads.submit(waits, url, queue_name, job.id, 30)
            monitor.wait_for("BLMOVE", job.id)
        queue.redis.flushall()
        server.kill()
        server.start()
        with pytest.raises(UnknownJob):
            waiting.result(PATIENCE)


def test_a_wait_ends_with_its_time_while_redis_is_gone(
    waits: Waits, make_server: Callable[..., EmbeddedRedis], queue_name: str
) -> None:
    server = make_server(port=0)
    url = server.tcp_url or ""
    server.kill()
    for timeout in (0, LONGER_THAN_A_CALL_TRIES_S):
        began = monotonic()
        with pytest.raises(ConnectionLost):
            waits(url, queue_name, "any", timeout)
        assert timeout <= monotonic() - began < timeout + 20
