"""What every job takes where jobs have groups."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from tests.damage.situation import pull, put, settle, settle_each_way, situation, worked
from tests.damage.world import BODY, KEYS, World


@situation
def enqueue_with_a_group_into_a_plain_queue(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, group="g"), Put("n1", BODY)])


@situation
def enqueue_behind_others_of_a_group(world: World) -> Any:
    world.put("r0", "r1", group="g")
    return lambda: commands.enqueue(
        KEYS, [Put("n0", BODY, group="g"), Put("n1", BODY, group="h", priority=9)]
    )


@situation
def enqueue_with_a_group_to_who_waits(world: World) -> Any:
    world.put("k1", group="g")
    world.join("c3", 1)
    world.pull("c3", 1)
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, group="h")])


@situation
def pull_of_groups(world: World) -> Any:
    for number in range(3):
        world.put(f"r{number}", group=f"g{number}")
    world.join("c2", 2)
    return pull(world, "c2", Window(2))


@situation
def pull_of_all_groups(world: World) -> Any:
    for number in range(3):
        world.put(f"r{number}", group=f"g{number}")
    world.join("c2", 9)
    return pull(world, "c2", Window(9))


@situation
def pull_of_groups_and_others(world: World) -> Any:
    world.put("r0", "m0", "r1")
    world.put("r2", group="g")
    world.put("r3", priority=9)
    world.put("r4", "r5", group="h", priority=9)
    world.put("r6")
    world.run(commands.cancel(KEYS, "m0"))
    world.join("c2", 9)
    return pull(world, "c2", Window(9))


@situation
def pull_of_groups_that_are_due(world: World) -> Any:
    world.put("r0", group="g")
    worked(world, "c3", 2)
    world.put("s0", "s1", delay_ms=1000, group="g")
    world.put("s2", delay_ms=1000, group="h", priority=9)
    world.put("s3", delay_ms=1000)
    world.move(2000)
    world.join("c2", 5)
    return pull(world, "c2", Window(5))


@situation
def settle_of_one_of_a_group(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1", "r2", group="g")
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_of_a_group_and_no_pull(world: World) -> Any:
    worked(world)
    worked(world, "c3", 1)
    put(world, "r0", "r1", group="g")
    return settle(world, "c2", None, ack=["r0"])


@situation
def settle_of_several_of_groups(world: World) -> Any:
    world.put("r0", "r1", group="g")
    world.put("r2", "r3", group="h")
    world.put("r4", "r5")
    world.join("c2", 3)
    world.pull("c2", 3)
    return settle(world, "c2", Window(3), 3, ack=["r0"], done=[("r2", None, b"7"), ("r4", 0, b"")])


@situation
def settle_of_outcomes_of_groups(world: World) -> Any:
    for number in range(5):
        world.put(f"r{number}", f"w{number}", group=f"g{number}")
    return settle_each_way(world)


@situation
def settle_of_a_release_of_a_group_while_others_wait(world: World) -> Any:
    worked(world, jobs=2)
    worked(world, "c3")
    put(world, "r0", "r1", group="g")
    return settle(world, "c2", None, 0, release=["r0"])


def expired_heads(world: World) -> None:
    """The first ones of two groups, and one behind them, have waited for too long."""
    world.put("r0", "r1", ttl_ms=1000, group="g")
    world.put("r2", group="g")
    world.put("r3", ttl_ms=1000, group="h")
    world.put("r4", "r5", group="h")
    world.move(2000)


@situation
def pull_of_groups_whose_heads_are_expired(world: World) -> Any:
    world.join("c2", 2)
    expired_heads(world)
    return pull(world, "c2", Window(2))


@situation
def pull_of_groups_and_others_with_expired_heads(world: World) -> Any:
    world.join("c2", 9)
    world.put("a0", "a1", ttl_ms=1000)
    expired_heads(world)
    world.put("a2")
    return pull(world, "c2", Window(9))


@situation
def enqueue_that_sweeps_groups_for_who_waits(world: World) -> Any:
    worked(world, "c2", 1)
    world.join("c3", 5)
    world.pull("c3", 5)
    expired_heads(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, ttl_ms=5000)])


@situation
def settle_of_one_of_a_group_whose_next_is_expired(world: World) -> Any:
    worked(world)
    put(world, "r0", group="g")
    world.put("r1", ttl_ms=1000, group="g")
    world.put("r2", group="g")
    world.move(2000)
    return settle(world, "c2", Window(1), ack=["r0"])
