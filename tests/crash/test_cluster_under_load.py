"""A Redis Cluster is changed while clients work on it: slots move, masters die. Nothing is lost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

import pytest

from rqueue.inspector.doctor.doctor import Doctor
from tests.support.cluster_load import Load
from tests.support.redis_cluster import SmallCluster, slot_of
from tests.support.slot_moves import move_slot, move_slot_at_once, moves_at_once

LONG = [pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 21)]


def sound(cluster: SmallCluster, load: Load) -> None:
    """The doctor finds nothing in the queues."""
    with cluster.client() as client:
        for line in load.lines:
            assert Doctor(client, "rqueue").check_queue(line.name) == []


@pytest.mark.parametrize("seed", [1, *LONG])
def test_slots_move_key_by_key(make_cluster: Callable[..., SmallCluster], seed: int) -> None:
    cluster, order = make_cluster(), random.Random(seed)
    names = cluster.queues_everywhere()
    with Load(cluster.cluster_url, names) as load:
        for number in range(4):
            name = order.choice(names)
            slot = slot_of(name)
            others = [line for line in load.lines if line.name != name]
            targets = [node for node in cluster.masters() if node is not cluster.master_of(slot)]
            go_on = partial(load.goes_on, 1, others if number == 0 else [])  # they do not notice
            move_slot(cluster, slot, order.choice(targets), seed=seed + number, between=go_on)
            load.goes_on(10)
        load.finish()
        for line in load.lines:
            assert line.numbers() == [number for number, _ in line.accepted], "each once, in order"
        sound(cluster, load)


@pytest.mark.parametrize("seed", [1, *LONG])
def test_slots_move_at_once(make_cluster: Callable[..., SmallCluster], seed: int) -> None:
    cluster, order = make_cluster(), random.Random(seed)
    if not moves_at_once(cluster.members[0]):
        return  # this kind of server moves them key by key alone
    names = cluster.queues_everywhere()
    with Load(cluster.cluster_url, names) as load:
        for _ in range(4):
            slot = slot_of(order.choice(names))
            targets = [node for node in cluster.masters() if node is not cluster.master_of(slot)]
            move_slot_at_once(cluster, slot, order.choice(targets))
            load.goes_on(10)
        load.finish()
        for line in load.lines:
            assert line.numbers() == [number for number, _ in line.accepted], "each once, in order"
        sound(cluster, load)


@pytest.mark.parametrize("seed", [1, *LONG])
def test_a_master_dies_and_only_its_own_queues_wait(
    make_cluster: Callable[..., SmallCluster], seed: int
) -> None:
    """Enqueues are confirmed by the replica, so what was accepted is there when it is promoted;
    settles are not, so that what was done may be done again."""
    cluster = make_cluster(replicas=2, **{"cluster-require-full-coverage": "no"})
    names = cluster.queues_everywhere()
    victim = random.Random(seed).choice(cluster.masters())
    with Load(cluster.cluster_url, names, replicas=1) as load:
        its_own = [line for line in load.lines if cluster.home(line.name) is victim]
        others = [line for line in load.lines if line not in its_own]
        began = time.monotonic()
        _, promoted_at = cluster.kill_master(victim)
        load.goes_on(5, its_own)
        resumed_at = next(at for _, at in its_own[0].accepted if at > promoted_at)
        load.goes_on(20)
        down_s = promoted_at - began
        load.finish()
        for line in others:
            assert line.numbers() == [number for number, _ in line.accepted]
            assert not line.failures
            assert line.stall(began) < down_s, "they do not wait for the promotion"
        assert {number for number, _ in its_own[0].accepted} == set(its_own[0].numbers())
        assert resumed_at - promoted_at < 5, "it is found soon"
        sound(cluster, load)
