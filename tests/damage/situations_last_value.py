"""What every job takes where of the jobs of a key only the latest waits."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.result_wait import await_result
from tests.damage.situation import pull, put, settle, settle_each_way, situation, worked
from tests.damage.world import BODY, ERROR, KEYS, World


@situation
def enqueue_with_a_key_into_a_plain_queue(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, key="k"), Put("n1", BODY)])


@situation
def enqueue_that_displaces(world: World) -> Any:
    world.put("r0", key="k")
    world.put("r1", key="l", priority=9)
    world.run(await_result(KEYS, "r0", wait=True))
    return lambda: commands.enqueue(
        KEYS, [Put("n0", BODY, key="k"), Put("n1", BODY, key="l"), Put("n2", BODY, key="k")]
    )


@situation
def enqueue_that_displaces_a_retry_to_who_waits(world: World) -> Any:
    worked(world)
    put(world, "r0", key="k")
    world.settle("c2", retry=[Retried("r0", 5_000_000, "head", True, ERROR)])
    world.pull("c2", 1)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, key="k")])


@situation
def pull_of_last_values_and_others(world: World) -> Any:
    world.put("r0", "m0", "r1")
    for number in range(4):
        world.put(f"v{number}", key=f"k{number}")
    world.put("r2", priority=9)
    world.join("c2", 9)
    return pull(world, "c2", Window(9))


@situation
def pull_of_last_values_that_are_due(world: World) -> Any:
    world.put("r0", key="k")
    world.put("s0", "s1", delay_ms=1000, key="k")
    world.put("s2", delay_ms=1000, key="l", priority=9)
    world.put("s3", delay_ms=1000)
    world.move(2000)
    world.join("c2", 5)
    return pull(world, "c2", Window(5))


@situation
def settle_of_one_last_value(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1", key="k")
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_outcomes_of_last_values(world: World) -> Any:
    for number in range(6):
        world.put(f"r{number}", key=f"k{number}")
    return settle_each_way(world, release=["r5"])


@situation
def settle_of_older_values_that_come_back(world: World) -> Any:
    for number in range(3):
        world.put(f"r{number}", key=f"k{number}")
    world.join("c2", 3)
    world.pull("c2", 3)
    for number in range(3):
        world.put(f"n{number}", key=f"k{number}")
    return settle(
        world,
        "c2",
        Window(3),
        2,
        retry=[Retried("r0", 0, "old", True, ERROR), Retried("r1", 900, "tail", True, ERROR)],
        release=["r2"],
    )
