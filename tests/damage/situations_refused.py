"""What every job takes where consumers refuse some."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.policies import Kind
from rqueue.protocol.policies.refusals import ELSEWHERE
from tests.damage.situation import pull, settle, situation, worked
from tests.damage.world import BODY, ERROR, KEYS, World


def refuses(*ids: str) -> list[Retried]:
    return [Retried(id, 0, ELSEWHERE, False, b"") for id in ids]


def refused(world: World, *ids: str) -> None:
    """The first consumer, of term 1, refused these; the queue has this policy and no other."""
    world.run(commands.configure(KEYS, {"v": Kind.of(["refusals"]).stamp}))
    world.put(*ids)
    world.join("c3", len(ids))
    world.pull("c3", len(ids))
    world.settle("c3", retry=refuses(*ids))


@situation
def settle_that_refuses_in_a_plain_queue(world: World) -> Any:
    world.run(commands.configure(KEYS, {"v": "1"}))
    world.put("r0", "r1")
    world.join("c2", 2)
    world.pull("c2", 2)
    world.join("c3", 1)
    return settle(world, "c2", None, 1, ack=["r0"], retry=refuses("r1"))


@situation
def settle_that_refuses_and_pulls(world: World) -> Any:
    refused(world, "f0", "f1")
    world.put("r0", "r1", "r2")
    world.join("c2", 2, 500)
    world.pull("c2", 2, 500)
    return settle(world, "c2", Window(2, 500), 1, ack=["f0"], retry=refuses("f1"))


@situation
def settle_of_outcomes_where_some_are_refused(world: World) -> Any:
    refused(world, "f0", "f1", "f2")
    world.join("c2", 3)
    world.pull("c2", 3)
    retry = [Retried("f1", 0, "old", True, ERROR)]
    return settle(world, "c2", None, 2, ack=["f0"], retry=retry, release=["f2"])


@situation
def pull_of_what_others_refused(world: World) -> Any:
    world.put("r0")
    refused(world, "f0", "f1")
    world.put("r1")
    world.join("c2", 5, 500)
    return pull(world, "c2", Window(5, 500))


@situation
def enqueue_where_some_are_refused(world: World) -> Any:
    worked(world)
    refused(world, "f0")
    world.pull("c3", 1)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])
