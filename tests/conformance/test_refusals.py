"""What is refused says why, and has changed nothing."""

from typing import Any

import pytest

from rqueue.errors import RQueueError, WrongServer
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, every_place


@every_place
@pytest.mark.parametrize(
    "call",
    [
        lambda k: commands.enqueue(k, [Put("X", b"[]")]),
        lambda k: commands.register(k, "c", lease_ms=1000),
        lambda k: commands.pull(k, "c", "1", Window(1)),
        lambda k: commands.pause(k),
        lambda k: commands.cancel(k, "A"),
        lambda k: commands.renew(k, 1000, []),
    ],
)
def test_a_queue_of_another_version_is_left_alone(q: QueueFixture, call: Any) -> None:
    """H-13."""
    q.put("A")
    q.queue.redis.hset(q.queue.keys.meta, "v", "2")
    before = q.look()
    with pytest.raises(WrongServer, match="another version"):
        execute(q.queue.redis, call(q.queue.keys))
    assert not (wrong := invariants.unchanged(before, q.look())), wrong
    q.queue.redis.hset(q.queue.keys.meta, "v", "1")


@pytest.mark.parametrize("verb", ["pull", "settle"])
def test_a_browser_acquires_nothing(q: QueueFixture, verb: str) -> None:
    """Q-34."""
    browser = q.join(5, mode="browse")
    q.put("A")
    before = q.look()
    keys, name, term = q.queue.keys, browser.name, browser.term
    calls: dict[str, ScriptCall[Any]] = {
        "pull": commands.pull(keys, name, term, Window(5)),
        "settle": commands.settle(keys, name, term, Window(5)),
    }
    with pytest.raises(RQueueError, match="browser"):
        execute(q.queue.redis, calls[verb])
    assert not (wrong := invariants.unchanged(before, q.look())), wrong
