"""Artemis's last-value queue."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, ids


def put(q: QueueFixture, *names: str, **options: int) -> None:
    """Jobs named "<key><number>"; those of the key "-" have none."""
    for name in names:
        q.put(name, key=name[0] if name[0] != "-" else None, **options)


def displaced(q: QueueFixture) -> int:
    return int(q.queue.counts().meta.get("displaced", "0"))


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["a1", "a2"], ["a2"]),
        (["a1", "b2", "a3", "b4"], ["a3", "b4"]),
        (["-1", "-2"], ["-1", "-2"]),
    ],
)
def test_ALV_01_replace_several_keys_no_key(
    q: QueueFixture, names: list[str], left: list[str]
) -> None:
    """A-31."""
    q.queue.configure(kind="last_value")
    put(q, *names)
    assert q.queue.counts().ready == len(left)
    assert displaced(q) == len(names) - len(left)
    assert ids(q.join().pull()) == left


def test_ALV_02_the_first_one_in_delivery_when_the_second_comes(q: QueueFixture) -> None:
    put(q, "m1")
    consumer = q.join()
    consumer.pull()
    put(q, "m2")
    consumer.ack("m1")
    assert ids(consumer.pull()) == ["m2"]
    assert displaced(q) == 0


def test_ALV_04_six_in_delivery_cancelled(q: QueueFixture) -> None:
    first = q.join(10)
    for i in range(1, 7):
        put(q, f"m{i}")
        assert ids(first.pull()) == [f"m{i}"]
    first.close()
    assert ids(q.join().pull()) == ["m6"]
    assert displaced(q) == 5


def test_ALV_06_restart(make_q: Callable[[EmbeddedRedis], QueueFixture], tmp_path: Path) -> None:
    """What Redis keeps of keys survives with it."""
    with EmbeddedRedis(tmp_path) as server:
        put(make_q(server), "m1", "m2")
    with EmbeddedRedis(tmp_path) as server:
        again = make_q(server)
        assert again.queue.counts().ready == 1
        put(again, "m3")
        consumer = again.join()
        assert ids(consumer.pull()) == ["m3"]
        again.close()


def test_ALV_07_scheduled_values(q: QueueFixture) -> None:
    """They take part when they are due, one by one."""
    for i in range(5):
        put(q, f"m{i}", **({"delay_ms": 1000 * i} if i else {}))
    seen = []
    for _ in range(5):
        execute(q.queue.redis, commands.promote(q.queue.keys, []))
        seen.append((q.queue.counts().ready, q.queue.counts().scheduled, displaced(q)))
        move_time(q.queue, 1000)
    assert seen == [(1, 4, 0), (1, 3, 1), (1, 2, 2), (1, 1, 3), (1, 0, 4)]
    assert ids(q.join().pull()) == ["m4"]
