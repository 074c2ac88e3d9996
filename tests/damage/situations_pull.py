"""Pulls, in all the ways that jobs of a plain queue are taken."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Retried, Window
from tests.damage.situation import pull, put, situation, worked
from tests.damage.world import ERROR, KEYS, World


@situation
def pull_of_one(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1")
    return pull(world, "c2", Window(1))


@situation
def pull_of_some_with_another_window(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1", "r2")
    world.pull("c2", 1)
    return pull(world, "c2", Window(2, 500))


@situation
def pull_of_all(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1")
    return pull(world, "c2", Window(5))


@situation
def pull_of_nothing(world: World) -> Any:
    worked(world)
    world.put("r0")  # delivered directly
    return pull(world, "c2", Window(5))


@situation
def pull_of_nothing_again(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    return pull(world, "c2", Window(1))


@situation
def pull_after_a_reconnect(world: World) -> Any:
    worked(world, jobs=2)
    world.put("r0")
    world.put("r1")
    return pull(world, "c2", Window(5), 0)


@situation
def pull_with_cancelled_ones(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "m0", "r1", "m1")
    for id in ("m0", "m1"):
        world.run(commands.cancel(KEYS, id))
    return pull(world, "c2", Window(5))


@situation
def pull_of_what_is_too_big(world: World) -> Any:
    world.join("c2", 5, 60)
    put(world, "r0", "r1", "r2", "r3")
    return pull(world, "c2", Window(5, 60))


@situation
def pull_of_what_another_had_no_room_for(world: World) -> Any:
    world.join("c2", 5, 60)
    put(world, "r0", "r1", "r2", "r3")
    world.pull("c2", 5, 60)
    world.join("c3", 1)
    return pull(world, "c3", Window(1))


@situation
def pull_in_a_paused_queue(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1")
    world.run(commands.pause(KEYS))
    return pull(world, "c2", Window(1))


@situation
def pull_of_a_full_consumer(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1")
    world.pull("c2", 2)
    return pull(world, "c2", Window(1))


@situation
def pull_of_levels_while_others_wait(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.run(commands.pause(KEYS))
    world.put("r0", "r1", "r2", priority=9)
    world.put("r3", "r4", "r5")
    world.run(commands.resume(KEYS))
    return pull(world, "c2", Window(2))


@situation
def pull_where_consumers_are_ranked(world: World) -> Any:
    worked(world)
    world.join("c3", 2, priority=5)
    world.pull("c3", 2)
    world.join("c4", 2, priority=3)
    world.put("r0", "r1", "r2", "r3", "r4")
    return pull(world, "c2", Window(2))


@situation
def pull_of_what_is_due(world: World) -> Any:
    worked(world)
    world.put("s0", "s1", "s2", delay_ms=1000)
    world.put("s3", delay_ms=1000, priority=9)
    world.move(2000)
    return pull(world, "c2", Window(2))


@situation
def pull_of_what_goes_back_to_its_place(world: World) -> Any:
    worked(world)
    world.join("c3", 4)
    world.join("b1", 5, mode="browse")
    world.put("s0", "s1", "s2", "r0", "r1")
    world.pull("c3", 4)
    world.settle("c3", retry=[Retried("s0", 1000, "park", False, b'{"reason":"unknown"}')])
    world.settle("c3", retry=[Retried("s1", 1000, "tail", True, ERROR)])
    world.settle("c3", retry=[Retried("s2", 1000, "aside", False, b"")])
    world.client.hset(KEYS.jobs, "s2", "garbage")
    world.move(2000)
    return pull(world, "c2", Window(5))


@situation
def pull_that_watches_the_schedule(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    return pull(world, "c3", Window(1))


@situation
def pull_of_a_full_consumer_while_others_wait(world: World) -> Any:
    worked(world, jobs=2)
    worked(world, "c3")
    worked(world, "c4")
    world.put("r0")
    return pull(world, "c2", Window(1))


@situation
def pull_of_a_full_consumer_where_consumers_are_ranked(world: World) -> Any:
    worked(world, jobs=2)
    world.put("r0")
    world.join("c3", 3, priority=5)
    world.pull("c3", 3)
    world.join("c4", 1, priority=3)
    world.pull("c4", 1)
    put(world, "r1", "r2")
    return pull(world, "c2", Window(1))
