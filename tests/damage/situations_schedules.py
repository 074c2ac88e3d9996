"""What every job takes where ticks of schedules are due."""

from __future__ import annotations

from typing import Any

from rqueue.model.schedule import Timing
from rqueue.protocol import commands
from rqueue.protocol.commands import Window
from tests.damage.situation import pull, put, settle, situation, worked
from tests.damage.world import KEYS, World
from tests.support.schedules import schedule


def every_minute(world: World, *names: str, terms: str = "4,,0,", **timing: Any) -> None:
    for name in names:
        said = schedule(world.now, Timing.of(every=60, **timing), terms=terms)
        world.run(commands.set_schedule(KEYS, name, "", said))


@situation
def pull_of_ticks(world: World) -> Any:
    every_minute(world, "s0", "s1", missed="all")
    put(world, "r0")
    world.join("c2", 5)
    world.move(150_000)
    return pull(world, "c2", Window(5))


@situation
def pull_of_a_tick_that_waited_for_the_end_of_a_job(world: World) -> Any:
    every_minute(world, "s0", overlap="queue")
    world.join("c2", 5)
    for _ in range(2):
        world.move(61_000)
        world.pull("c2", 5)
    (held,) = world.held("c2")
    world.settle("c2", ack=[held])
    return pull(world, "c2", Window(5))


@situation
def settle_that_finds_a_tick(world: World) -> Any:
    worked(world)
    every_minute(world, "s0")
    put(world, "r0")
    world.pull("c2", 1)
    world.move(61_000)
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def pull_of_ticks_of_unique_jobs(world: World) -> Any:
    every_minute(world, "s0", terms="4,,0|uex:k0,")
    every_minute(world, "s1", terms="4,,0|u500x:k1,")
    world.put("r0", unique="sx:k0")
    world.join("c2", 5)
    world.move(61_000)
    return pull(world, "c2", Window(5))


@situation
def pull_of_nothing_before_the_next_tick(world: World) -> Any:
    every_minute(world, "s0")
    world.join("c2", 5)
    world.join("c3", 5)
    world.pull("c3", 5)
    return pull(world, "c2", Window(5))
