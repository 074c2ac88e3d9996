"""A Redis Cluster is looked at whole: every node is asked, and one that cannot be is named."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest
import redis
from click.testing import Result

from rqueue import Inspector, connect
from rqueue.errors import AuthenticationFailed, ConnectionLost, UnknownJob, UnknownQueue
from rqueue.inspector import Finding
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.keys import QueueKeys
from rqueue.transport import key_scan
from rqueue.transport.redis_client import execute
from tests.support.command_line import invoke
from tests.support.deployments import one_server
from tests.support.profiles import examples
from tests.support.redis_cluster import ClusterNode, SmallCluster, queue_in, slot_of
from tests.support.slot_moves import move_slot, moving

MakeCluster = Callable[..., SmallCluster]


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of this test alone, so that all queues means its queues."""
    return queue_name.replace("[", "-").replace("]", "")


def fill(cluster: SmallCluster, namespace: str, queues: list[str], jobs: int = 2) -> None:
    with cluster.client() as client:
        for queue in queues:
            puts = [Put(f"{queue}-{number}", b'["t"]') for number in range(jobs)]
            call = commands.enqueue(QueueKeys(queue, namespace), puts)
            execute(cast("redis.Redis", client), call)


@pytest.fixture
def inspector(redis_cluster: SmallCluster, namespace: str) -> Iterator[Inspector]:
    with Inspector(redis_cluster.cluster_url, namespace=namespace) as inspector:
        yield inspector


def place(node: ClusterNode) -> str:
    return f"127.0.0.1:{node.port}"


def problems(found: list[Finding]) -> list[str]:
    return [one.kind for one in found if one.severity == "problem"]


# -- all nodes are asked ---------------------------------------------------------------------------


def test_all_queues_of_all_nodes(
    redis_cluster: SmallCluster, inspector: Inspector, namespace: str
) -> None:
    queues = redis_cluster.queues_everywhere(namespace=namespace)
    fill(redis_cluster, namespace, queues)
    assert inspector.queue_names() == sorted(queues)
    found = inspector.find_queues()
    assert not found.missing
    for queue in queues:
        home = place(redis_cluster.home(queue, namespace))
        assert found.nodes[queue] == home == inspector.node_of(queue)
    assert [info.ready for info in inspector.queues()] == [2, 2, 2]
    assert inspector.job(f"{queues[2]}-1").job.queue == queues[2]
    with pytest.raises(UnknownJob):
        inspector.job("no such job")
    with pytest.raises(UnknownQueue):
        inspector.queue("no such queue")


@one_server
def test_one_server_is_one_node(client: redis.Redis, namespace: str) -> None:
    inspector = Inspector(redis=client, namespace=namespace)
    execute(client, commands.enqueue(QueueKeys("q", namespace), [Put("j", b'["t"]')]))
    assert inspector.find_queues().nodes == {"q": ""} and inspector.node_of("q") == ""
    inspector.purge("q")


def test_no_queue_is_missed_while_it_moves(
    redis_cluster: SmallCluster,
    inspector: Inspector,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its `meta` goes from a node to be scanned to one that was, and back."""
    # it does so several times in each round, as fast as this machine can: nobody's slots do
    monkeypatch.setattr(key_scan, "ROUNDS", 3 * key_scan.ROUNDS)
    queue = redis_cluster.queue_on(redis_cluster.masters()[0], namespace=namespace)
    fill(redis_cluster, namespace, [queue])
    slot, home = slot_of(queue, namespace), redis_cluster.masters()[0]
    stop, moves, failures = threading.Event(), [], []

    def mover() -> None:
        try:
            while not stop.is_set():
                for target in (*redis_cluster.masters()[1:], home):
                    move_slot(redis_cluster, slot, target, seed=len(moves))
                    moves.append(target)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=mover)
    thread.start()
    try:
        looks = 0
        while (looks < examples(20, 60) or len(moves) < 9) and not failures:
            looks += 1
            assert list(inspector.find_queues().nodes) == [queue], f"at look {looks}, {moves}"
    finally:
        stop.set()
        thread.join()
    assert not failures
    redis_cluster.settle()
    assert redis_cluster.home(queue, namespace) is home


# -- a node is away --------------------------------------------------------------------------------


@pytest.fixture(params=[0, 1])
def maimed(
    request: pytest.FixtureRequest, make_cluster: MakeCluster, namespace: str
) -> tuple[SmallCluster, list[str], int]:
    """A cluster one of whose masters was killed, and has no replica; a queue of each master."""
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    queues = cluster.queues_everywhere(namespace=namespace)
    fill(cluster, namespace, queues)
    cluster.members[request.param].server.kill()
    return cluster, queues, request.param


def test_a_node_that_is_away_is_named_and_the_others_are_shown(
    maimed: tuple[SmallCluster, list[str], int], namespace: str
) -> None:
    cluster, queues, which = maimed
    gone = place(cluster.members[which])
    lost, *kept = queues[which], *(queue for queue in queues if queue != queues[which])
    where = ("--url", cluster.cluster_url, "--namespace", namespace)

    def run(*args: str, code: int) -> Result:
        return invoke(*where, *args, code=code)

    listed = run("queues", "--nodes", code=4)
    assert f"node {gone} is missing" in listed.stderr and listed.stderr.count("missing") == 1
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == sorted(kept)
    documents = json.loads(run("queues", "--json", "--nodes", code=4).stdout)
    assert [one["name"] for one in documents] == sorted(kept)
    measured = run("stats", "--interval", "10ms", code=4)
    assert gone in measured.stderr
    assert [line.split()[0] for line in measured.stdout.splitlines()[1:]] == sorted(kept)
    doctored = run("doctor", code=1)
    assert f"node {gone} of the cluster cannot be asked" in " ".join(doctored.stdout.split())
    assert "are served by nobody meanwhile, and no replica can take its place" in " ".join(
        doctored.stdout.split()
    )
    assert "2 queues" in doctored.stdout
    assert gone in run("show", "no such job", code=4).stderr
    assert kept[0] in run("show", f"{kept[0]}-1", code=0).stdout
    assert run("queues", lost, code=4).stdout == ""
    with Inspector(cluster.cluster_url, namespace=namespace) as inspector:
        with pytest.raises(ConnectionLost, match=gone):
            inspector.queue_names()
        with pytest.raises(ConnectionLost, match=gone):
            inspector.queues()
        found = inspector.doctor(wait=lambda _seconds: None).check()
        assert problems(found) == ["node-away"]


# -- the doctor ------------------------------------------------------------------------------------


def test_a_cluster_that_is_well(
    redis_cluster: SmallCluster, inspector: Inspector, namespace: str
) -> None:
    fill(redis_cluster, namespace, redis_cluster.queues_everywhere(namespace=namespace))
    found = inspector.doctor(wait=lambda _seconds: None).check()
    assert problems(found) == []
    server = [one for one in found if one.invariant == "server"]
    assert [one.kind for one in server].count("no-limit") == 3, "each master is looked at"
    assert [one.kind for one in server].count("no-replica") == 3
    assert [one.kind for one in server].count("full-coverage") == 3
    for node in redis_cluster.masters():
        assert sum(place(node) in one.says for one in server) >= 3


def test_replicas_and_coverage_are_seen(replicated_cluster: SmallCluster, namespace: str) -> None:
    with Inspector(replicated_cluster.cluster_url, namespace=namespace) as inspector:
        found = inspector.doctor(wait=lambda _seconds: None).check_server()
    assert {one.kind for one in found} == {"no-limit"}


def test_a_slot_that_stands_half_moved_is_a_problem(
    redis_cluster: SmallCluster, inspector: Inspector, namespace: str
) -> None:
    queue = queue_in(77, namespace=namespace)
    fill(redis_cluster, namespace, [queue])
    physician = inspector.doctor(wait=lambda _seconds: None)
    with moving(redis_cluster, 77) as move:
        move.begin()
        try:
            (said,) = [one.says for one in physician.check_server() if one.kind == "slot-open"]
            assert f"slot 77 is open from {place(move.from_)} to {place(move.to)}" in said
            keys = move.left()

            def meanwhile(_seconds: float) -> None:
                move.one(keys[0])

            moves = inspector.doctor(wait=meanwhile).check_server()
            assert [one.severity for one in moves if one.kind == "slot-moving"] == ["note"]
            assert "slot-open" not in problems(moves)
        finally:
            for key in move.left():
                move.one(key)
            move.end()
    redis_cluster.settle()
    assert problems(physician.check()) == []
    move_slot(redis_cluster, 77, redis_cluster.masters()[0])


def test_slots_that_nobody_serves_are_a_problem(make_cluster: MakeCluster, namespace: str) -> None:
    cluster = make_cluster()
    for node in cluster.members:
        node.ask("CLUSTER", "DELSLOTS", 5, 6, 900)
    with Inspector(cluster.cluster_url, namespace=namespace) as inspector:
        found = inspector.doctor(wait=lambda _seconds: None).check_server()
    (said,) = [one.says for one in found if one.kind == "slots"]
    assert "slots 5-6, 900:" in said


def test_settings_of_every_master_count(redis_cluster: SmallCluster, inspector: Inspector) -> None:
    last = redis_cluster.masters()[2]
    last.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        found = inspector.doctor(wait=lambda _seconds: None).check_server()
    finally:
        last.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert problems(found) == ["eviction"]
    assert [place(last) in one.says for one in found if one.kind == "eviction"] == [True]


# -- a login with few rights -----------------------------------------------------------------------

INSPECTOR = (
    "on >few ~rqueue:* +@read +@write +@scripting +@connection +@transaction -@dangerous +info"
    " +time +command +cluster|slots +cluster|nodes +cluster|info +cluster|countkeysinslot"
)


@pytest.mark.each_server
def test_a_login_with_few_rights_sees_all(make_cluster: MakeCluster) -> None:
    """As docs/servers.md says: what concerns settings is left out where CONFIG is refused."""
    cluster = make_cluster()
    queues = cluster.queues_everywhere()
    fill(cluster, "rqueue", queues)
    for node in cluster.members:
        node.ask("ACL", "SETUSER", "inspector", *INSPECTOR.split())
    url = cluster.cluster_url.replace("redis+cluster://", "redis+cluster://inspector:few@")
    with Inspector(url) as inspector:
        assert inspector.queue_names() == sorted(queues)
        found = inspector.doctor(wait=lambda _seconds: None).check()
    assert problems(found) == []
    assert "no-replica" in {one.kind for one in found}
    assert "full-coverage" not in {one.kind for one in found}


@pytest.mark.each_server
def test_a_login_that_may_not_ask_for_the_map_is_told_so(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    for node in cluster.members:
        node.ask("ACL", "SETUSER", "few", "on", ">few", "~rqueue:*", "+@read", "+@connection")
    url = cluster.cluster_url.replace("redis+cluster://", "redis+cluster://few:few@")
    with pytest.raises(AuthenticationFailed, match=r"\+?cluster") as caught:
        connect(url)
    assert "not in cluster mode" not in str(caught.value)
