"""The table of a queue's shards, and what they keep of it, with damage of every kind: the doctor
finds it, and what it repairs takes the same jobs to the same shards as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis

from rqueue import Options, ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import UnknownQueue
from rqueue.inspector import Inspector
from rqueue.inspector.doctor.doctor import Doctor
from rqueue.inspector.doctor.findings import Finding
from rqueue.protocol.keys import QueueKeys

KEYS = [f"k{number}" for number in range(12)]
Damage = Callable[[redis.Redis, QueueKeys, QueueKeys], object]
"""Of a queue that is spread, and one of its shards."""


def kept(shard: QueueKeys) -> str:
    return shard.base + "kept_shards"


def another(client: redis.Redis, key: str) -> None:
    """A key becomes one of another type."""
    client.delete(key)
    client.set(key, "x")


OF_THE_TABLE: dict[str, tuple[str, Damage]] = {
    "gone": ("table", lambda c, of, _: c.delete(of.shards)),
    "gone with its queue": ("table", lambda c, of, _: c.delete(of.shards, of.meta)),
    "gone, and one that is kept": ("table", lambda c, of, its: c.delete(of.shards, kept(its))),
    "of another type": ("table", lambda c, of, _: another(c, of.shards)),
    "a row that says nothing": ("table", lambda c, of, _: c.hset(of.shards, "1", "zzz")),
    "a row that is gone": ("table-other", lambda c, of, _: c.hdel(of.shards, "1")),
    "a row of another shard": ("table-other", lambda c, of, _: c.hset(of.shards, "0", "open 9 ")),
    "a version that is none": ("table", lambda c, of, _: c.hset(of.shards, "version", "x")),
    "no version": ("table", lambda c, of, _: c.hdel(of.shards, "version")),
    "an earlier version": ("table-behind", lambda c, of, _: c.hset(of.shards, "version", "1")),
    "two rows of one shard": ("table", lambda c, of, _: c.hset(of.shards, "01", "open 9 ")),
    "a change that is none": ("table", lambda c, of, _: c.hset(of.shards, "moving", "fly 7")),
    "a past that is none": ("table", lambda c, of, _: c.hset(of.shards, "past", "zzz")),
}
OF_A_SHARD: dict[str, tuple[str, Damage]] = {
    "keeps none": ("kept-table", lambda c, _, its: c.delete(kept(its))),
    "keeps one of another type": ("kept-table", lambda c, _, its: another(c, kept(its))),
    "keeps what is no row": ("kept-table", lambda c, _, its: c.hset(kept(its), "1", "zzz")),
    "keeps another row": ("kept-table", lambda c, _, its: c.hset(kept(its), "0", "open 9 ")),
    "keeps an earlier one": ("kept-table", lambda c, _, its: c.hset(kept(its), "version", "1")),
    "keeps a later one": ("kept-table", lambda c, _, its: c.hset(kept(its), "version", "99")),
    "keeps no version": ("kept-table", lambda c, _, its: c.hset(kept(its), "version", "x")),
    "knows no version": ("shard-gone", lambda c, _, its: c.hdel(its.meta, "shard_version")),
    "knows what is none": ("shard-gone", lambda c, _, its: c.hset(its.meta, "shard_version", "x")),
    "knows an earlier one": (
        "not-informed",
        lambda c, _, its: c.hset(its.meta, "shard_version", "1"),
    ),
    "says not whose it is": ("shard-of", lambda c, _, its: c.hdel(its.meta, "shard_of")),
    "has a fence that is no position": ("fence", lambda c, _, its: c.hset(its.meta, "fence", "x")),
    "has a fence beyond all": ("fence", lambda c, _, its: c.hset(its.meta, "fence", "999999")),
    "waits for what is none": ("stray-fence", lambda c, _, its: c.hset(its.meta, "fences", "x")),
}
FOR_PEOPLE: dict[str, tuple[str, Damage]] = {
    "a field that nobody knows": ("table-field", lambda c, of, _: c.hset(of.shards, "zzz", "1")),
    "knows one that nobody keeps": (
        "table-behind",
        lambda c, _, its: c.hset(its.meta, "shard_version", "99"),
    ),
    "is another queue's": ("shard-of", lambda c, _, its: c.hset(its.meta, "shard_of", "other")),
}


@pytest.fixture
def spread(server: EmbeddedRedis, queue_name: str) -> Iterator[ShardedQueue]:
    """Three shards, of which one has opened later, with jobs."""
    name = queue_name.partition("[")[0][-40:] + queue_name[-8:]
    with ShardedQueue(name, server.url, shards=2) as queue:
        queue.table()
        queue.open(order=False)
        fill(queue)
        yield queue


def fill(queue: ShardedQueue) -> set[tuple[str, str]]:
    """A job of each key; where they came to."""
    return {(key, queue.send("t", options=Options(key=key)).queue) for key in KEYS}


@pytest.fixture
def doctor(server: EmbeddedRedis) -> Iterator[Doctor]:
    with Inspector(server.url) as inspector:
        yield inspector.doctor(wait=lambda _seconds: None)


def found_in(doctor: Doctor, name: str) -> list[Finding]:
    """What is found in a queue and its shards, as the command looks at them all."""
    found: list[Finding] = []
    for one in (name, *(f"{name}~{number}" for number in range(3))):
        try:
            found += doctor.check_queue(one)
        except UnknownQueue:
            assert one == name
    return found


def damage_it(spread: ShardedQueue, client: redis.Redis, how: Damage) -> None:
    how(client, QueueKeys(spread.name), QueueKeys(f"{spread.name}~1"))


@pytest.mark.parametrize(
    ("kind", "how"),
    [*OF_THE_TABLE.values(), *OF_A_SHARD.values()],
    ids=[*OF_THE_TABLE, *OF_A_SHARD],
)
def test_what_can_be_known_again_is_repaired(
    kind: str, how: Damage, spread: ShardedQueue, doctor: Doctor, client: redis.Redis
) -> None:
    before = fill(spread)
    damage_it(spread, client, how)
    found = found_in(doctor, spread.name)
    assert kind in {one.kind for one in found}
    assert all(one.action for one in found)
    assert doctor.heal(found[0].queue) == []
    assert found_in(doctor, spread.name) == []
    with ShardedQueue(spread.name, redis=client) as anew:
        assert fill(anew) == before
        assert anew.counts().ready == 3 * len(KEYS)


@pytest.mark.parametrize(("kind", "how"), FOR_PEOPLE.values(), ids=FOR_PEOPLE)
def test_what_cannot_is_found_and_left_as_it_is(
    kind: str, how: Damage, spread: ShardedQueue, doctor: Doctor, client: redis.Redis
) -> None:
    damage_it(spread, client, how)
    for _ in range(2):
        (found,) = found_in(doctor, spread.name)
        assert found.kind == kind and not found.action
        doctor.heal(spread.name)


@pytest.mark.parametrize("fence", ["x", "", "-", "999999"])
def test_nobody_passes_a_fence_that_is_no_position(
    fence: str, spread: ShardedQueue, client: redis.Redis
) -> None:
    """Who informs the shard anew lets all that it has stand before it: order holds."""
    opened = spread.open()
    source = QueueKeys(f"{spread.name}~0")
    waiting = f"{spread.name}~{opened}"
    last = client.hget(source.meta, "seq")
    client.hset(source.meta, "fence", fence)
    assert spread.advance().moving
    assert client.hget(source.meta, "fence") == last
    assert b"0" in (client.hget(QueueKeys(waiting).meta, "fences") or b"").split()
