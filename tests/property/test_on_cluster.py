"""What the model says holds on a node of a Redis Cluster too: no script touches a key of another
slot, or one that it did not say it would."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from rqueue.protocol.keys import QueueKeys
from tests.property.machine import Machine
from tests.property.planted import Fault, is_found
from tests.property.sources import sound
from tests.property.test_machine import SEARCHES
from tests.support.profiles import THOROUGH, examples
from tests.support.redis_cluster import ClusterNode, SmallCluster, slot_of


class OnANode(Machine):
    """With queues in slots that its node serves."""

    slots: ClassVar[frozenset[int]]

    @classmethod
    def fresh_name(cls) -> str:
        while slot_of(name := super().fresh_name()) not in cls.slots:
            pass
        return name


def slots_of(cluster: SmallCluster, node: ClusterNode) -> frozenset[int]:
    return frozenset(cluster.slots(node))


@pytest.mark.timeout(3600 if THOROUGH else 240)
@pytest.mark.parametrize("kind", SEARCHES)
def test_a_queue_on_a_node_does_what_the_model_says(
    kind: type[Machine], redis_cluster: SmallCluster
) -> None:
    node = redis_cluster.masters()[1]
    search = settings(SEARCHES[kind], max_examples=examples(2, 60, thorough=1000))
    with node.client() as client:
        parts = {"client": client, "lua": sound(), "slots": slots_of(redis_cluster, node)}
        run_state_machine_as_test(type("Machine", (OnANode, kind), parts), settings=search)


def test_it_is_found_that_a_script_reads_a_key_of_another_slot(redis_cluster: SmallCluster) -> None:
    node, other, _ = redis_cluster.masters()
    key = QueueKeys(redis_cluster.queue_on(other)).meta
    right = "redis.call('HSET', meta, 'paused', '1')"
    fault = Fault("", "pause.lua", right, f"redis.call('EXISTS', '{key}') {right}")
    with node.client() as client:
        machine = type("OnIt", (OnANode,), {"slots": slots_of(redis_cluster, node)})
        is_found(fault, client, machine)
