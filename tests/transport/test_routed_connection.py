"""The connection of one queue of a Redis Cluster: it leads to where the queue's slot is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
import redis
import redis.cluster
from redis.cluster import RedisCluster

from rqueue import errors
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.result_wait import await_result
from rqueue.protocol.slots import Address
from rqueue.transport.cluster import cluster_of
from rqueue.transport.connection import Connection
from rqueue.transport.redis_client import execute, open_async_client, open_client, url_of
from rqueue.transport.routed_connection import RoutedConnection, connection_for
from rqueue.transport.wake_listener import WakeListener
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from tests.support.redis_cluster import SmallCluster, slot_of
from tests.support.slot_moves import move_slot, move_slot_at_once, moves_at_once, moving


@pytest.fixture
def client(redis_cluster: SmallCluster) -> Iterator[redis.Redis]:
    client = open_client(redis_cluster.cluster_url, socket_connect_timeout=2, socket_timeout=10)
    yield client
    client.close()


@pytest.fixture
def keys(redis_cluster: SmallCluster, queue_name: str) -> Iterator[QueueKeys]:
    yield (keys := QueueKeys(queue_name))
    with redis_cluster.client() as client:
        for key in client.scan_iter(match=keys.pattern()):
            client.delete(key)


@pytest.fixture
def connection(client: redis.Redis, keys: QueueKeys) -> Iterator[RoutedConnection]:
    connection = connection_for(client, keys, 10)
    assert isinstance(connection, RoutedConnection)
    yield connection
    connection.close()


def enqueued(connection: Connection, keys: QueueKeys, id: str) -> int:
    return connection.run(commands.enqueue(keys, [Put(id, b'["t"]')])).accepted


def moved_back(cluster: SmallCluster, slot: int) -> None:
    """Slots of the shared cluster stand where they were."""
    move_slot(cluster, slot, cluster.members[slot * 3 // 16384])


# -- where it leads --------------------------------------------------------------------------------


def test_each_queue_has_its_node(redis_cluster: SmallCluster, client: redis.Redis) -> None:
    for queue in redis_cluster.queues_everywhere("leads"):
        keys = QueueKeys(queue)
        connection = connection_for(client, keys)
        assert isinstance(connection, RoutedConnection)
        try:
            assert connection.run(commands.counts(keys)).ready == 0
            assert connection.address == redis_cluster.home(queue).address
            assert connection.url.endswith(f", now {connection.address}")
        finally:
            connection.close()


def test_for_one_server_it_is_a_plain_connection(server: EmbeddedRedis) -> None:
    with open_client(server.url) as client:
        connection = connection_for(client, QueueKeys("q"), 3)
        assert type(connection) is Connection


def test_one_host_of_the_url_is_enough(redis_cluster: SmallCluster, keys: QueueKeys) -> None:
    alive = redis_cluster.members[1].port
    url = f"redis+cluster://127.0.0.1:{free_port()},127.0.0.1:{alive}"
    with open_client(url) as client:
        assert url_of(client) == url
        assert execute(client, commands.counts(keys)).ready == 0
        connection = connection_for(client, keys)
        assert enqueued(connection, keys, "a") == 1
        connection.close()


def test_the_clients_of_redis_py_will_do(redis_cluster: SmallCluster, keys: QueueKeys) -> None:
    strategies = getattr(redis.cluster, "LoadBalancingStrategy", None)  # from redis-py 5.3 on
    reads = {"load_balancing_strategy": strategies.ROUND_ROBIN} if strategies else {}
    made: list[RedisCluster] = [
        redis_cluster.client(),
        RedisCluster.from_url(redis_cluster.url, protocol=3, **reads),
    ]
    for number, client in enumerate(made):
        connection = connection_for(client, keys)
        assert enqueued(connection, keys, str(number)) == 1
        connection.close()
        client.close()


def test_a_login_is_that_of_all_nodes(make_cluster: Callable[..., SmallCluster]) -> None:
    cluster = make_cluster(requirepass="secret", masterauth="secret")
    with open_client(cluster.cluster_url) as client:
        assert "secret" not in url_of(client)
        for queue in cluster.queues_everywhere():
            keys = QueueKeys(queue)
            connection = connection_for(client, keys)
            assert enqueued(connection, keys, "a") == 1
            connection.close()
            execute(client, commands.counts(keys))
    with open_client(cluster.cluster_url.replace("secret", "wrong")) as client:
        keys = QueueKeys("q")
        with pytest.raises(errors.AuthenticationFailed):
            execute(client, commands.counts(keys))
        with pytest.raises(errors.AuthenticationFailed):
            connection_for(client, keys).run(commands.counts(keys))


def test_nothing_is_asked_when_a_client_is_opened() -> None:
    url = f"redis+cluster://127.0.0.1:{free_port()}"
    with open_client(url) as client:
        assert url_of(client) == url
        keys = QueueKeys("q")
        with pytest.raises(errors.ConnectionLost):
            execute(client, commands.counts(keys))
        with pytest.raises(errors.ConnectionLost) as caught:
            connection_for(client, keys).run(commands.counts(keys))
        assert not caught.value.outcome_unknown


def test_a_server_that_is_in_no_cluster_says_so(private_server: EmbeddedRedis) -> None:
    url = private_server.tcp_url.replace("redis://", "redis+cluster://")
    look = commands.counts(keys := QueueKeys("q"))
    with open_client(url) as client:
        with pytest.raises(errors.WrongServer, match="not in cluster mode"):
            connection_for(client, keys).run(look)
        with pytest.raises(errors.WrongServer, match="not in cluster mode"):
            execute(client, look)


# -- a slot that moves -----------------------------------------------------------------------------


def test_a_slot_that_has_moved_is_followed(
    redis_cluster: SmallCluster, connection: RoutedConnection, keys: QueueKeys
) -> None:
    assert enqueued(connection, keys, "before") == 1
    version = connection.cluster.slots.version
    target = move_slot(redis_cluster, connection.slot)
    try:
        assert enqueued(connection, keys, "after") == 1
        assert connection.address == target.address
        assert connection.cluster.slots.version == version + 1
        # the call behind which a command waits, too
        moved_back(redis_cluster, connection.slot)
        look = await_result(keys, "after", wait=True)
        seen, moved = connection.run_then(look, ("BLMOVE", *[keys.result("after")] * 2, "LEFT",
                                                 "LEFT", 0.01))  # fmt: skip
        assert (seen.state, moved) == ("live", None)
        assert connection.address != target.address
    finally:
        with suppress(AssertionError):  # it is there already
            moved_back(redis_cluster, connection.slot)


def test_a_moving_slot_is_waited_for(
    redis_cluster: SmallCluster, connection: RoutedConnection, keys: QueueKeys
) -> None:
    assert enqueued(connection, keys, "before") == 1
    with moving(redis_cluster, connection.slot) as move:
        move.begin()
        began = time.monotonic()
        with pytest.raises(errors.SlotBusy) as caught:
            enqueued(connection, keys, "refused")
        assert time.monotonic() - began > 0.19
        assert not caught.value.outcome_unknown
        for key in move.left():
            move.one(key)
        with pytest.raises(errors.SlotBusy):  # ASK now, which nobody follows
            enqueued(connection, keys, "refused")
        ender = threading.Timer(0.05, move.end)
        ender.start()
        assert enqueued(connection, keys, "after") == 1
        ender.join()
        assert connection.address == move.to.address
    moved_back(redis_cluster, connection.slot)
    assert enqueued(connection, keys, "back") == 1


def test_a_call_that_was_begun_is_finished_elsewhere(
    redis_cluster: SmallCluster, connection: RoutedConnection, keys: QueueKeys
) -> None:
    connection.connect()
    target = move_slot(redis_cluster, connection.slot)
    try:
        call = commands.enqueue(keys, [Put("a", b'["t"]')])
        connection.begin(call)
        assert connection.finish(call).accepted == 1
        assert connection.address == target.address
    finally:
        moved_back(redis_cluster, connection.slot)


def test_a_node_that_forgot_its_scripts_is_taught(
    redis_cluster: SmallCluster, connection: RoutedConnection, keys: QueueKeys
) -> None:
    enqueued(connection, keys, "a")
    target = next(n for n in redis_cluster.masters() if n.address != connection.address)
    target.ask("SCRIPT", "FLUSH")
    move_slot(redis_cluster, connection.slot, target)
    try:
        assert enqueued(connection, keys, "b") == 1
    finally:
        moved_back(redis_cluster, connection.slot)


@pytest.mark.parametrize("at_once", [False, True])
def test_who_waits_for_wake_ups_hears_that_the_slot_moves(
    redis_cluster: SmallCluster, client: redis.Redis, keys: QueueKeys, at_once: bool
) -> None:
    if at_once and not moves_at_once(redis_cluster.members[0]):
        return  # of this kind of server there is the other way alone
    calls, listening = connection_for(client, keys), connection_for(client, keys, timeout=None)
    calls.run(commands.register(keys, "c", lease_ms=600_000))
    listener = WakeListener(listening)
    listener.add("c", keys.wake("c"))
    assert listener.wait(0.01) == []
    (move_slot_at_once if at_once else move_slot)(redis_cluster, slot_of(keys.queue))
    try:
        heard = []
        began = time.monotonic()
        while not heard:
            with suppress(errors.SlotBusy):
                heard = listener.wait(5)
            assert time.monotonic() - began < PATIENCE
        assert heard[0].kind == "reconnected"
        calls.run(commands.enqueue(keys, [Put("a", b'["t"]')]))
        assert [wake.consumer for wake in listener.wait(PATIENCE)] == ["c"]
    finally:
        listener.close()
        calls.close()
        moved_back(redis_cluster, slot_of(keys.queue))


# -- a node that is gone ---------------------------------------------------------------------------


def test_a_promoted_replica_is_found(replicated_cluster: SmallCluster) -> None:
    cluster = replicated_cluster
    with open_client(cluster.cluster_url, socket_connect_timeout=2) as client:
        queues = [QueueKeys(queue) for queue in cluster.queues_everywhere()]
        connections = [connection_for(client, keys) for keys in queues]
        for connection, keys in zip(connections, queues, strict=True):
            enqueued(connection, keys, "a")
        heir, _ = cluster.kill_master(cluster.home(queues[0].queue))

        def again() -> bool:
            try:
                return enqueued(connections[0], queues[0], "b") == 1
            except errors.RedisUnavailable:
                # who is elsewhere does not notice
                assert enqueued(connections[1], queues[1], f"at {time.monotonic()}") == 1
                return False

        until(again, "the new master", PATIENCE)
        assert isinstance(connections[0], RoutedConnection)
        assert connections[0].address == heir.address
        for connection in connections:
            connection.close()


def test_many_threads_ask_for_the_map_once(redis_cluster: SmallCluster) -> None:
    with open_client(redis_cluster.cluster_url) as client:
        cluster, keys = cluster_of(client), QueueKeys("many")
        cluster.owner(0)
        dead = Address("127.0.0.1", free_port())
        cluster.slots.learn(slot_of("many"), dead)
        cluster.lost(dead)
        asked_before = _asked(redis_cluster)
        start = threading.Barrier(16)
        failed: list[Exception] = []

        def call() -> None:
            connection = connection_for(client, keys)
            start.wait(PATIENCE)
            try:
                connection.connect()
            except Exception as error:
                failed.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=call) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert _asked(redis_cluster) - asked_before == 1


def _asked(cluster: SmallCluster) -> int:
    found = 0
    for node in cluster.members:
        with node.client() as client:
            said = client.info("commandstats")
        found += int(said.get("cmdstat_cluster|slots", {}).get("calls", 0))
    return found


def test_a_redis_py_that_is_too_old_for_clusters_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis, "__version__", "5.3.1")
    for opened in (open_client, open_async_client):
        with pytest.raises(errors.ConfigError, match=r"needs redis-py 6\.2 or later, and 5\.3\.1"):
            opened("redis+cluster://127.0.0.1:7000")
