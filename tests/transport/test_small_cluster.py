"""The clusters that tests are run on do what a real one does: fail over, and move slots."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rqueue.protocol.keys import QueueKeys
from tests.support.redis_cluster import ClusterNode, SmallCluster, queue_in, slot_of
from tests.support.slot_moves import move_slot, move_slot_at_once, moves_at_once, moving

pytestmark = pytest.mark.each_server

MakeCluster = Callable[..., SmallCluster]


def written(node: ClusterNode, queue: str) -> dict[str, bytes]:
    """Write some keys of a queue to its node, and return them."""
    with node.client() as client:
        found = {f"{QueueKeys(queue).base}{n}": b"%d" % n for n in range(20)}
        for key, value in found.items():
            client.set(key, value)
    return found


def held(node: ClusterNode, keys: dict[str, bytes]) -> dict[str, bytes]:
    with node.client() as client:
        return {key: client.get(key) for key in keys}


def test_each_master_has_a_queue_and_a_replica(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(replicas=1)
    masters = cluster.masters()
    assert masters == cluster.members[:3]
    assert [len(cluster.replicas(node)) for node in masters] == [1, 1, 1]
    assert [cluster.home(queue) for queue in cluster.queues_everywhere()] == masters
    assert cluster.home(cluster.queue_on(masters[1], nth=3)) is masters[1]
    assert slot_of(queue_in(12345)) == 12345
    with cluster.client() as client:
        assert {node.port for node in client.get_primaries()} == {node.port for node in masters}


def test_a_killed_master_is_replaced_and_comes_back_as_a_replica(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(replicas=1, **{"cluster-require-full-coverage": "no"})
    old, *others = cluster.masters()
    queue = cluster.queue_on(old)
    kept = written(old, queue)
    (heir,) = cluster.replicas(old)
    with old.client() as client:
        assert client.execute_command("WAIT", 1, 10_000) == 1
    new, _ = cluster.kill_master(old)
    assert new is heir and cluster.home(queue) is heir
    assert held(new, kept) == kept
    cluster.bring_back(old)
    assert cluster.replicas(heir) == [old]
    assert set(cluster.masters()) == {heir, *others}


def test_a_slot_moves_key_by_key(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    queue = "queue"
    source = cluster.home(queue)
    kept = written(source, queue)
    seen = set()

    def look() -> None:
        with moving(cluster, slot_of(queue)) as move:
            seen.add(len(move.left()))

    target = move_slot(cluster, slot_of(queue), seed=3, between=look)
    cluster.settle()
    assert seen == set(range(21))
    assert target is not source and cluster.home(queue) is target
    assert held(target, kept) == kept


def test_a_move_that_is_given_up(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    source = cluster.home("queue")
    with moving(cluster, slot_of("queue")) as move:
        move.begin()
        assert not cluster.agreed(), "a slot that is under way"
        move.give_up()
    cluster.settle()
    assert cluster.home("queue") is source


def test_a_slot_moves_at_once(make_cluster: MakeCluster, server_name: str) -> None:
    cluster = make_cluster()
    queue = "queue"
    source = cluster.home(queue)
    assert moves_at_once(source) == (server_name == "newest")
    if not moves_at_once(source):
        with pytest.raises(redis.ResponseError):
            move_slot_at_once(cluster, slot_of(queue))
        return
    kept = written(source, queue)
    stop, acknowledged = threading.Event(), []

    def load() -> None:
        with cluster.client() as client:
            while not stop.is_set():
                number = len(acknowledged)
                client.rpush(QueueKeys(queue).base + "load", number)
                acknowledged.append(number)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        target = move_slot_at_once(
            cluster, slot_of(queue), random.Random(2).choice(others(source, cluster))
        )
    finally:
        stop.set()
        thread.join()
    cluster.settle()
    assert cluster.home(queue) is target
    assert held(target, kept) == kept
    with target.client() as client:
        stored = client.lrange(QueueKeys(queue).base + "load", 0, -1)
    assert [int(number) for number in stored] == acknowledged


def others(one: ClusterNode, cluster: SmallCluster) -> list[ClusterNode]:
    return [node for node in cluster.masters() if node is not one]


def test_a_cluster_with_a_password(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(requirepass="secret")
    assert ":secret@" in cluster.cluster_url
    port, once = cluster.members[0].port, Retry(NoBackoff(), 0)
    with redis.Redis(port=port, retry=once) as nobody, pytest.raises(redis.AuthenticationError):
        nobody.ping()
    kept = written(cluster.home("queue"), "queue")
    assert held(move_slot(cluster, slot_of("queue")), kept) == kept
