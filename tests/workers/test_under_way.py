"""Calls under way to a node that gives a slot away, and to another one that hangs: nobody waits."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rqueue.errors import RedisTimeout
from rqueue.protocol import commands
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.course import Calls
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.slots import Address, slot_of
from rqueue.settings import Settings
from rqueue.transport.cluster import Cluster, cluster_of
from rqueue.transport.knock import SILENT_S
from rqueue.transport.owner_knock import OwnerKnock
from rqueue.transport.redis_client import open_client
from rqueue_workers.worker.route import open_routes
from tests.support.patience import PATIENCE, until
from tests.support.redis_cluster import ClusterNode, SmallCluster

LOOK_MOST_S = 0.4
"""Seconds that one look may take on a busy machine; who waits for a node that hangs does so for 2 s
(and a knock for 1 s)."""


@contextmanager
def hung(*nodes: ClusterNode) -> Iterator[None]:
    """These answer nothing, and keep their connections open."""
    for node in nodes:
        os.kill(node.server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for node in nodes:
            os.kill(node.server.pid, signal.SIGCONT)


def by_looks(look: Callable[[], bool]) -> float:
    """Look until it is over; seconds that the longest look took."""
    took: list[float] = []

    def over() -> bool:
        since = time.monotonic()
        try:
            return look()
        finally:
            took.append(time.monotonic() - since)

    until(over, "the end of the looks", PATIENCE)
    return max(took)


@pytest.fixture
def cluster(make_cluster: Callable[..., SmallCluster]) -> SmallCluster:
    return make_cluster(**{"cluster-require-full-coverage": "no"})


@pytest.fixture
def known(cluster: SmallCluster) -> Iterator[Cluster]:
    with open_client(cluster.cluster_url) as client:
        found = cluster_of(client)
        found.owner(0)
        yield found


def address_of(node: ClusterNode) -> Address:
    return Address(*node.address)


def test_of_all_that_may_know_the_owner_the_first_that_answers_is_asked(
    cluster: SmallCluster, known: Cluster
) -> None:
    gone, also_gone, there = cluster.masters()
    slot = slot_of(QueueKeys(cluster.queue_on(there)).meta)
    known.slots.learn(slot, address_of(gone))  # as it was once
    with hung(gone, also_gone):
        known.lost(address_of(gone))
        knock = OwnerKnock(known, slot)
        assert by_looks(lambda: bool(knock.answered())) <= LOOK_MOST_S
    assert known.trusted(slot) == address_of(there)


def test_an_owner_that_hangs_beside_another_node_that_does_is_not_waited_for(
    cluster: SmallCluster, known: Cluster
) -> None:
    gone, also_gone, _ = cluster.masters()
    slot = slot_of(QueueKeys(cluster.queue_on(gone)).meta)
    since = time.monotonic()
    with hung(gone, also_gone):
        knock = OwnerKnock(known, slot)
        assert by_looks(lambda: knock.answered() is False) <= LOOK_MOST_S
        assert known.trusted(slot) is None  # its successor is looked for
    assert time.monotonic() - since >= SILENT_S


def test_a_call_that_is_sent_to_a_second_node_which_hangs_is_not_waited_for(
    cluster: SmallCluster,
) -> None:
    here, there, _ = cluster.masters()
    keys = QueueKeys(cluster.queue_on(there))

    def asking() -> Calls[None]:
        yield commands.counts(keys)

    with open_client(cluster.cluster_url) as client:
        known = cluster_of(client)
        known.owner(0)
        known.slots.learn(slot_of(keys.meta), address_of(here))  # it says MOVED
        (route,) = open_routes(client, Settings(), [keys])
        failed: list[RedisTimeout] = []

        def look() -> bool:
            try:
                return route.go_on()
            except RedisTimeout as error:
                failed.append(error)
                return True

        try:
            with hung(there):
                assert not route.begin(asking(), ConsumerState(keys))
                assert by_looks(look) <= LOOK_MOST_S
            assert failed and known.slots.owner(slot_of(keys.meta)) == address_of(there)
        finally:
            route.close()
