"""What is refused says why, and has changed nothing."""

from typing import Any

import pytest

from rqueue.errors import ConfigError, RQueueError, ScriptError, WrongServer
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture

WORD: Any = "soon"
"""No number, and no mode."""

WRONG: dict[str, Any] = {
    "more arguments than the groups say": lambda k, c: _with(
        commands.settle(k, c.name, c.term, None, ack=["A"]), "more"
    ),
    "an unknown place": lambda k, c: commands.settle(
        k, c.name, c.term, None, ack=["A"], retry=[Retried("B", 0, "nowhere", True, b"")]
    ),
    "a delay that is no number": lambda k, c: commands.settle(
        k, c.name, c.term, None, ack=["A"], retry=[Retried("B", WORD, "old", True, b"")]
    ),
    "a negative window": lambda k, c: commands.pull(k, c.name, c.term, Window(-1)),
    "no window": lambda k, c: commands.interest(k, c.name, c.term, Window(WORD)),
    "no jobs": lambda k, c: commands.enqueue_alike(k, []),
    "half a job": lambda k, c: commands.enqueue_alike(k, ["A", b"[]", "B"]),
    "runs of another number": lambda k, c: commands.enqueue_alike(k, ["A", b"[]"], "4,,0,9"),
    "two immediate jobs": lambda k, c: commands.enqueue(
        k, [Put("X", b"[]"), Put("Y", b"[]")], immediate=True
    ),
    "an unknown option": lambda k, c: commands.configure(k, {"keep_ms": 5000, "colour": 1}),
    "a limit out of range": lambda k, c: commands.configure(k, {"keep_ms": 5000, "priorities": 0}),
    "other levels with jobs there": lambda k, c: commands.configure(
        k, {"keep_ms": 5000, "priorities": 3}
    ),
    "a lease of nothing": lambda k, c: commands.renew(k, 0, [c.name]),
    "a name that is taken": lambda k, c: commands.register(k, c.name, lease_ms=1000),
    "a name with a newline": lambda k, c: commands.register(k, "a\nb", lease_ms=1000),
    "an unknown mode": lambda k, c: commands.register(
        k,
        "new",
        mode=WORD,
        lease_ms=1000,
    ),
    "a purge without limit": lambda k, c: commands.purge(k, 0),
    "a purge of nothing held": lambda k, c: commands.purge_held(k, c.name, []),
    "too many ids": lambda k, c: commands.requeue(k, [str(i) for i in range(300)]),
}


def _with(call: ScriptCall[Any], *more: str) -> ScriptCall[Any]:
    return ScriptCall(call.script, call.key, [*call.args, *more], call.read)


@pytest.mark.each_server
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_changes_nothing(q: QueueFixture, what: str) -> None:
    """H-01."""
    consumer = q.join(2)
    q.queue.pause()
    q.put("A", "B", "C")
    q.queue.resume()
    consumer.pull()
    before = q.look()
    with pytest.raises((ScriptError, ConfigError)):
        execute(q.queue.redis, WRONG[what](q.queue.keys, consumer))
    assert not (wrong := invariants.unchanged(before, q.look())), wrong


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
