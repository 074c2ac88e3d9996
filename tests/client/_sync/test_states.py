# Generated from tests/client/_async/test_states.py (`make generate`): do not edit.
"""A listener hears the states of a job as they change, without polling."""

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import UnknownJob
from rqueue.model.job import JobState
from tests.support.both import Together, outside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import pull

pytestmark = pytest.mark.each_server


def listen(handle: JobHandle[None], timeout: float | None) -> list[str]:
    heard: list[str] = []
    for state in handle.states(timeout):
        heard.append(str(state))
    return heard


def test_states_are_heard_to_the_end(
    queue: Queue, consumer: Consumer, server: EmbeddedRedis
) -> None:
    """Q-06."""
    queue.pause()
    handle, other = queue.send("t"), queue.send("t")
    with Together() as together:
        with monitoring(server.url) as monitor:
            listening = together.start(listen, handle, None)
            outside(monitor.wait_for, "XREAD")
            queue.resume()
            first, second = pull(consumer, 2)
            assert second.id == other.id
            consumer.ack(second)  # of another job: nothing is heard
            outside(monitor.wait_for, "XREAD")
            consumer.retry(first, delay=60)
            outside(monitor.wait_for, "XREAD")
            handle.cancel()
            heard = listening.result(PATIENCE)
    assert [state for state in heard if state != "held"] == ["ready", "scheduled", "cancelled"]


def test_what_has_ended_is_heard_at_once(queue: Queue) -> None:
    handle = queue.send("t")
    queue.cancel(handle.id)
    assert listen(queue.job(handle.id), None) == ["cancelled"]
    with pytest.raises(UnknownJob):
        listen(queue.job("none"), None)


def test_the_time_to_listen_ends(queue: Queue) -> None:
    handle = queue.send("t")
    assert listen(handle, 0) == ["ready"]
    assert listen(handle, 0.05) == ["ready"]
    assert handle.state() is JobState.READY


def test_it_goes_on_behind_a_cut_connection(
    far: Queue, near: Queue, proxy: Proxy, private_server: EmbeddedRedis
) -> None:
    """Nothing is missed meanwhile."""
    handle = far.send("t")
    with Together() as together:
        with monitoring(private_server.url) as monitor:
            listening = together.start(listen, handle, 30)
            outside(monitor.wait_for, "XREAD")
            proxy.cut()
            outside(monitor.wait_for, "XREAD")
            near.cancel(handle.id)
            assert listening.result(PATIENCE) == ["ready", "cancelled"]
