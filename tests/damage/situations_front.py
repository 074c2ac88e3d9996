"""What every job takes where jobs come to the front."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from tests.damage.situation import pull, settle, situation, worked
from tests.damage.world import BODY, ERROR, KEYS, World


def last_in_first_out(world: World) -> None:
    world.run(commands.configure(KEYS, {"lifo": 1}))


@situation
def enqueue_of_jobs_that_come_to_the_front(world: World) -> Any:
    last_in_first_out(world)
    world.put("r0", "r1")
    return lambda: commands.enqueue(
        KEYS, [Put("n0", BODY), Put("n1", BODY, priority=9), Put("n2", BODY, delay_ms=500)]
    )


@situation
def enqueue_of_one_for_who_waits(world: World) -> Any:
    last_in_first_out(world)
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def pull_of_those_that_come_to_the_front_when_they_are_due(world: World) -> Any:
    last_in_first_out(world)
    world.put("r0")
    world.put("d0", "d1", delay_ms=1000)
    world.move(2000)
    world.join("c2", 5, 500)
    return pull(world, "c2", Window(5, 500))


@situation
def settle_of_what_came_to_the_front(world: World) -> Any:
    last_in_first_out(world)
    world.put("f0", "f1", "f2", "f3")
    world.join("c2", 3)
    world.pull("c2", 3)
    return settle(
        world,
        "c2",
        Window(3),
        2,
        ack=["f3"],
        retry=[Retried("f2", 0, "old", True, ERROR)],
        release=["f1"],
    )
