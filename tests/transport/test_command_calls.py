"""The calls of Redis's own commands: each asks the same of every kind of client, and reads what it
answers, in whatever form."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.exceptions import RedisClusterException

from rqueue import errors
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import commands
from rqueue.protocol.call import CommandCall
from rqueue.protocol.commands import (
    Put,
    clock,
    consumer_rows,
    history,
    job_notes,
    queue_keys,
    server,
)
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.key_scan import queue_names, scan_queue
from rqueue.transport.redis_client import (
    aexecute,
    execute,
    execute_all,
    is_cluster,
    open_client,
    translated,
)
from tests.support.redis_cluster import SmallCluster
from tests.transport.command_samples import builders, fill, samples, without_time

pytestmark = pytest.mark.each_server

OF_SERVERS = {"server_info", "cluster_nodes", "cluster_info", "keys_in_slot", "setting"}
"""Calls about no queue; those of nodes are tried in tests/inspector/test_cluster.py."""


def test_every_call_has_a_sample() -> None:
    assert builders() - OF_SERVERS == set(samples(QueueKeys("q")))


@pytest.fixture(params=["resp2", "resp3", "cluster"])
def any_client(request: pytest.FixtureRequest, server: EmbeddedRedis) -> Iterator[Any]:
    if request.param == "cluster":
        with request.getfixturevalue("redis_cluster").client() as nodes:
            yield nodes
    else:
        with open_client(server.url, protocol=int(request.param[-1])) as client:
            yield client


@pytest.fixture
def keys(queue_name: str) -> QueueKeys:
    return QueueKeys(queue_name)


def test_each_call_over_each_client(any_client: Any, keys: QueueKeys) -> None:
    fill(any_client, keys)
    for name, found in samples(keys).items():
        for sample in found:
            assert without_time(execute(any_client, sample.call)) == sample.expected, name
    assert execute(any_client, server.server_info())["redis_version"]


@pytest.mark.parametrize("protocol", [2, 3])
def test_each_call_over_asyncio(
    server: EmbeddedRedis, client: redis.Redis, keys: QueueKeys, protocol: int
) -> None:
    async def ask_all() -> None:
        async with redis.asyncio.Redis.from_url(server.url, protocol=protocol) as anew:
            for name, found in samples(keys).items():
                for sample in found:
                    assert without_time(await aexecute(anew, sample.call)) == sample.expected, name

    fill(client, keys)
    asyncio.run(ask_all())


@pytest.fixture
def full(any_client: Any) -> Iterator[Any]:
    """Called, the servers have reached their maxmemory."""

    def set_limit(most: str) -> None:
        if is_cluster(any_client):
            any_client.config_set("maxmemory", most, target_nodes=any_client.PRIMARIES)
        else:
            any_client.config_set("maxmemory", most)

    yield lambda: set_limit("1")
    set_limit("0")


def test_a_full_server_answers_each_call(any_client: Any, keys: QueueKeys, full: Any) -> None:
    """It refuses any transaction; what asks of one moment asks otherwise then."""
    fill(any_client, keys)
    found = [(name, one) for name, its in samples(keys).items() for one in its]
    asked = [(name, one) for name, one in found if not writes(one.call)]
    full()
    for name, sample in asked:
        assert without_time(execute(any_client, sample.call)) == sample.expected, name
    together = execute_all(any_client, [queue_keys.meta_fields(keys, "v"), clock.read_clock(keys)])
    assert together[0] == execute(any_client, queue_keys.meta_fields(keys, "v"))
    with pytest.raises(errors.RedisOutOfMemory):
        execute(any_client, commands.enqueue(keys, [Put("new", b'["t"]')]))


WRITES = {"HDEL", "HINCRBY", "HSET", "UNLINK"}


def writes(call: CommandCall[Any]) -> bool:
    """Whether it changes something."""
    return any(words[0] in WRITES for words in call.commands)


def test_several_go_together(any_client: Any, keys: QueueKeys) -> None:
    """More than one transaction has, of several queues, in their order."""
    queues = [QueueKeys(f"{keys.queue}-{number}") for number in range(120)]
    for number, one in enumerate(queues):
        any_client.hset(one.meta, "number", number)
    calls = [queue_keys.meta_fields(one, "number") for one in queues]
    assert execute_all(any_client, calls) == [[b"%d" % number] for number in range(120)]
    assert execute_all(any_client, []) == []
    assert [name for name in queue_names(any_client, "rqueue") if keys.queue in name] == sorted(
        one.queue for one in queues
    )
    assert list(scan_queue(any_client, queues[7], "m*")) == [queues[7].meta]


def test_a_clock_that_goes(client: redis.Redis, keys: QueueKeys) -> None:
    execute(client, clock.move_clock(keys, 86_400_000))
    seconds, _ = client.time()
    read = execute(client, clock.read_clock(keys))
    assert read.stopped is None
    assert 0 <= read.now - 86_400_000 - seconds * 1000 < 60_000


def test_a_consumer_that_is_called_like_a_queue(client: redis.Redis, queue_name: str) -> None:
    """What ends like the `meta` key of a queue is none."""
    keys = QueueKeys(queue_name)
    client.hset(keys.meta, "v", 1)
    client.rpush(keys.held("{x}:meta"), "j1")
    assert [name for name in queue_names(client, "rqueue") if queue_name in name] == [queue_name]


def test_a_key_of_a_wrong_type_is_named(any_client: Any, keys: QueueKeys) -> None:
    """Also where it is one of several that go together."""
    fill(any_client, keys)
    any_client.unlink(keys.held("c1"))
    any_client.set(keys.held("c1"), "no list")
    for call in (consumer_rows.held_ids(keys, "c1"), consumer_rows.consumer_row(keys, "c1")):
        with pytest.raises(errors.QueueDamaged) as said:
            execute_all(any_client, [queue_keys.meta_fields(keys, "v"), call])
        wrong = said.value
        assert (wrong.queue, wrong.key) == (keys.queue, keys.held("c1"))
        assert (wrong.found, wrong.expected) == ("string", "list")


def test_what_redis_refuses_is_named(private_server: EmbeddedRedis) -> None:
    """One command, or one of several: the error is the same."""
    keys = QueueKeys("q")
    with open_client(private_server.url) as client:
        client.acl_setuser(
            "half",
            enabled=True,
            nopass=True,
            keys=["*"],
            commands=["+hget", "+multi", "+exec", "+@connection"],
        )
    with open_client(private_server.url, username="half", password="x") as client:
        for call in (job_notes.notes_of(keys, "parked", ["j1"]), history.history_ends(keys)):
            with pytest.raises(errors.AuthenticationFailed, match=r"give it \+(hmget|xrevrange)"):
                execute(client, call)


def test_a_cluster_is_no_single_server(redis_cluster: SmallCluster) -> None:
    """A plain client of a node asks for queues of other nodes; there is no cluster where none of
    its nodes answers."""
    with open_client(redis_cluster.url) as node:
        found = []
        for number in range(8):
            try:
                execute(node, queue_keys.queue_exists(QueueKeys(f"q{number}")))
            except errors.WrongServer as error:
                found.append(error)
        assert found, "some of the queues are on other nodes"
    with (
        redis_cluster.client() as nodes,
        pytest.raises(errors.ConnectionLost, match="cannot reach any node of the cluster"),
        translated(nodes),
    ):
        raise RedisClusterException("no node answers")
