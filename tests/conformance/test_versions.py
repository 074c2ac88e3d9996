"""Versions of what is in a queue: whether anything has changed since a listing was read."""

from collections.abc import Callable

from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, ids


def test_a_version_says_whether_anything_changed(q: QueueFixture) -> None:
    """C-15: after each step that changes where a job is it is one that was never there."""
    consumer = q.join(1)
    seen = [q.queue.counts().version]

    def changes(step: Callable[[], object]) -> None:
        step()
        version = q.queue.counts().version
        assert version not in seen
        assert q.listed() is not None
        assert q.queue.counts().version == version, "looking changes nothing"
        seen.append(version)

    changes(lambda: q.put("1"))
    changes(lambda: q.put("2", "3", "4", "5"))
    changes(lambda: q.put("6", delay_ms=1000))
    assert ids(consumer.pull()) == ["1"]
    changes(lambda: consumer.settle(release=["1"]))
    changes(consumer.pull)
    changes(lambda: consumer.settle(release=["1"]))
    changes(consumer.pull)
    changes(lambda: consumer.retry("1", delay=60))
    changes(consumer.pull)
    changes(lambda: consumer.reject("2", "no"))
    changes(lambda: q.requeue("2"))
    changes(lambda: q.queue.cancel("3"))
    changes(lambda: q.queue.set_priority("4", 9))
    move_time(q.queue, 2000)
    changes(lambda: promote(q))
    changes(consumer.pull)
    changes(lambda: consumer.reject("4", "no"))
    changes(lambda: q.purge_dead("4"))
    changes(q.purge)


def promote(q: QueueFixture) -> int:
    """What is due becomes ready."""
    return execute(q.queue.redis, commands.promote(q.queue.keys))
