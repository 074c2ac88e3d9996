"""What a queue that is spread over shards says to each public call: it does it, or says that its
shards do. It never answers for itself alone: it has nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from rqueue import Options, ShardedQueue
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.schedules import AsyncSchedules
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.schedules import Schedules
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, QueueInUse, QueueSharded
from rqueue.protocol.exchange import KNOWN
from rqueue.protocol.keys import QueueKeys
from tests.client.every_call import QUEUE
from tests.support.snapshot import take_snapshot

GO_TO_SHARDS = {
    *("send", "enqueue", "enqueue_request", "enqueue_many", "enqueue_puts", "cancel", "forward")
}
OF_PARTS: dict[str, dict[str, Callable[[Any], object]]] = {
    "limits": {
        "set": lambda part: part.set("x", 3),
        "reset": lambda part: part.reset("x"),
        "list": lambda part: part.list(),
    },
    "shares": {
        "set": lambda part: part.set("x", 3),
        "reset": lambda part: part.reset("x"),
        "list": lambda part: part.list(),
    },
    "groups": {
        "owner": lambda part: part.owner("x"),
        "reset": lambda part: part.reset("x"),
    },
    "unique": {
        "owner": lambda part: part.owner("x"),
        "clear": lambda part: part.clear("x"),
    },
    "schedules": {
        "set": lambda part: part.set("x", "t", every="1m"),
        "edit": lambda part: part.edit("x", every="2m"),
        "get": lambda part: part.get("x"),
        "list": lambda part: part.list(),
        "next": lambda part: part.next("x"),
        "pause": lambda part: part.pause("x"),
        "resume": lambda part: part.resume("x"),
        "remove": lambda part: part.remove("x"),
        "reset": lambda part: part.reset("x"),
        "refill": lambda part: part.refill(),
        "run_now": lambda part: part.run_now("x"),
    },
}
REFUSED: dict[str, Callable[[Any], object]] = {
    name: call for name, call in QUEUE.items() if name not in GO_TO_SHARDS
} | {
    f"{part}.{name}": lambda queue, part=part, call=call: call(getattr(queue, part))
    for part, calls in OF_PARTS.items()
    for name, call in calls.items()
}
KINDS = pytest.mark.parametrize("kind", [Queue, AsyncQueue])


def done(kind: type, name: str, url: str, call: Callable[[Any], object]) -> object:
    """What a call comes to."""
    if kind is Queue:
        with Queue(name, url) as queue:
            return call(queue)

    async def work() -> object:
        async with AsyncQueue(name, url) as queue:
            found = call(queue)
            return await found if inspect.isawaitable(found) else found

    return asyncio.run(work())


@pytest.fixture
def spread(server: EmbeddedRedis, queue_name: str) -> Iterator[str]:
    """The name of a queue that is, of which this process does not know it."""
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.table()
    KNOWN.clear()
    yield queue_name
    KNOWN.clear()


@pytest.mark.parametrize("kind", [Schedules, AsyncSchedules])
def test_every_call_of_schedules_is_tried_here(kind: type) -> None:
    assert {name for name in dir(kind) if not name.startswith("_")} == {*OF_PARTS["schedules"]}


@KINDS
def test_every_part_of_a_queue_is_tried_here(kind: type) -> None:
    """One that is no call is what a queue has beside its jobs, or is known without asking."""
    others = {
        "connection",
        "keys",
        "name",
        "redis",
        "server",
        "settings",
        "table_steps",
        "target",
        "targets",
    }
    queue = kind("q", "redis://127.0.0.1:1")
    parts = {
        name
        for name in dir(queue)
        if not name.startswith("_") and not callable(getattr(queue, name))
    }
    assert parts == others | {*OF_PARTS}
    for part, calls in OF_PARTS.items():
        public = [name for name in dir(getattr(queue, part)) if not name.startswith("_")]
        assert public == sorted(calls)


@KINDS
@pytest.mark.parametrize("name", sorted(GO_TO_SHARDS))
def test_what_can_be_done_in_one_shard_is(
    kind: type, name: str, spread: str, server: EmbeddedRedis
) -> None:
    done(kind, spread, server.url, QUEUE[name])


@KINDS
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_for_shards_is_refused_and_changes_nothing(
    kind: type, name: str, spread: str, server: EmbeddedRedis, client: redis.Redis
) -> None:
    Queue("other", server.url).configure(priorities=10)  # where some jobs would go
    before = take_snapshot(client, QueueKeys(spread)).keys
    refusal = QueueInUse if name == "delete" else QueueSharded
    with pytest.raises(refusal, match=f"'{spread}'"):
        done(kind, spread, server.url, REFUSED[name])
    assert take_snapshot(client, QueueKeys(spread)).keys == before


def commit(kind: type, name: str, target: str, url: str) -> None:
    """A transaction of one queue with a job for another one."""
    if kind is Queue:
        with Queue(name, url) as queue, queue.transaction() as tx:
            tx.send("t")
            tx.at(queue.at(target)).send("t")
        return

    async def work() -> None:
        async with AsyncQueue(name, url) as queue, queue.transaction() as tx:
            tx.send("t")
            tx.at(queue.at(target)).send("t")

    asyncio.run(work())


TOWARDS: dict[str, Callable[[type, str, str, str], object]] = {
    "transaction": commit,
    **{
        name: lambda kind, source, spread, url, call=call: done(
            kind, source, url, lambda queue: call(queue, spread)
        )
        for name, call in {
            "dead_to": lambda queue, spread: queue.configure(dead_to=spread),
            "expired_to": lambda queue, spread: queue.configure(expired_to=spread),
            "jobs_to": lambda queue, spread: queue.delete(jobs_to=spread),
            "move": lambda queue, spread: queue.move(spread, "x"),
            "move_all": lambda queue, spread: queue.move_all(spread),
            "copy": lambda queue, spread: queue.copy(spread, "x"),
            "copy_all": lambda queue, spread: queue.copy_all(spread),
        }.items()
    },
}


@KINDS
@pytest.mark.parametrize("name", TOWARDS)
def test_jobs_of_another_queue_that_would_wait_for_ever_stay_where_they_are(
    kind: type, name: str, spread: str, server: EmbeddedRedis, client: redis.Redis
) -> None:
    source = f"{spread}-source"
    with Queue(source, server.url) as queue:
        queue.send("t", options=Options(id="x"))
    before = take_snapshot(client, QueueKeys(source)).keys
    with pytest.raises(QueueSharded, match=f"'{spread}'"):
        TOWARDS[name](kind, source, spread, server.url)
    assert take_snapshot(client, QueueKeys(source)).keys == before


@pytest.mark.parametrize(
    "made",
    [
        lambda queue, _: queue.send("t"),
        lambda queue, _: queue.schedules.set("nightly", "t", every="1d"),
        lambda queue, source: source.configure(dead_to=queue.name),
    ],
)
def test_a_queue_is_not_spread_under_what_it_has(
    made: Callable[[Queue, Queue], object], server: EmbeddedRedis, queue_name: str
) -> None:
    with Queue(queue_name, server.url) as queue, Queue(f"{queue_name}-s", server.url) as source:
        queue.configure(priorities=10)
        made(queue, source)
        with (
            ShardedQueue(queue_name, server.url, shards=2) as sharded,
            pytest.raises(ConfigError, match=r"^shards: "),
        ):
            sharded.table()


def test_what_is_asked_of_shards_where_there_are_none_says_how_to_have_some(
    server: EmbeddedRedis, queue_name: str
) -> None:
    with ShardedQueue(queue_name, server.url) as sharded:
        for asked in (sharded.table, sharded.open, sharded.counts, lambda: sharded.forget(1)):
            with pytest.raises(ConfigError, match=f"rqueue shards create {queue_name} 8"):
                asked()
