"""What every job takes where groups are sticky."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from tests.damage.situation import pull, settle, situation
from tests.damage.world import BODY, ERROR, KEYS, World


def sticky(world: World, **options: int) -> None:
    """Consumer c2 owns the bucket of `g`, c3 that of `b`, and each has nothing."""
    world.run(commands.configure(KEYS, {"sticky": 2, **options}))
    for name, group in (("c2", "g"), ("c3", "b")):
        world.put(f"k{group}", group=group)
        world.join(name, 3)
        world.pull(name, 3)
        world.settle(name, ack=[f"k{group}"])


@situation
def enqueue_for_an_owner_that_waits(world: World) -> Any:
    sticky(world)
    world.pull("c2", 3)
    world.pull("c3", 3)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, group="g")])


@situation
def enqueue_of_a_new_group_to_who_waits(world: World) -> Any:
    world.run(commands.configure(KEYS, {"sticky": 2}))
    world.join("c2", 3)
    world.pull("c2", 3)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, group="g")])


@situation
def enqueue_for_two_owners(world: World) -> Any:
    sticky(world)
    world.pull("c2", 3)
    world.pull("c3", 3)
    jobs = [Put("n0", BODY, group="g"), Put("n1", BODY, group="b"), Put("n2", BODY)]
    return lambda: commands.enqueue(KEYS, jobs)


@situation
def pull_of_what_is_its_own_and_others(world: World) -> Any:
    sticky(world)
    world.put("r0", group="g")
    world.put("r1", group="b")
    world.put("r2")
    return pull(world, "c2", Window(3))


@situation
def pull_of_new_groups(world: World) -> Any:
    world.run(commands.configure(KEYS, {"sticky": 2}))
    world.put("r0", group="g")
    world.put("r1", group="b")
    world.join("c2", 3, 500)
    return pull(world, "c2", Window(3, 500))


@situation
def settle_that_frees_the_next_of_a_bucket(world: World) -> Any:
    sticky(world)
    world.put("r0", "r1", group="g")
    world.put("r2", group="b")
    world.pull("c2", 1)
    return settle(world, "c2", Window(3), ack=["r0"])


@situation
def settle_of_outcomes_of_sticky_groups(world: World) -> Any:
    sticky(world)
    world.put("r0", "r1", group="g")
    world.put("r2", group="a")
    world.pull("c2", 3)
    world.pull("c3", 3)
    return settle(world, "c2", None, retry=[Retried("r0", 0, "old", True, ERROR)])
