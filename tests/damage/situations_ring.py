"""What every job takes where a queue keeps so many jobs."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.result_wait import await_result
from tests.damage.situation import pull, settle, situation, worked
from tests.damage.world import BODY, ERROR, KEYS, World


def full(world: World) -> None:
    """Two jobs wait, and no more may."""
    world.run(commands.configure(KEYS, {"ring_jobs": 2}))
    world.put("w0", "w1")


@situation
def enqueue_into_a_full_ring(world: World) -> Any:
    full(world)
    world.run(await_result(KEYS, "w0", wait=True))
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_of_levels_into_a_full_ring(world: World) -> Any:
    full(world)
    return lambda: commands.enqueue(
        KEYS, [Put("n0", BODY, priority=9), Put("n1", BODY), Put("n2", BODY, delay_ms=500)]
    )


@situation
def pull_of_what_is_due_in_a_full_ring(world: World) -> Any:
    full(world)
    world.put("s0", "s1", delay_ms=1000)
    world.move(2000)
    world.join("c2", 5)
    return pull(world, "c2", Window(5))


@situation
def settle_of_outcomes_in_a_full_ring(world: World) -> Any:
    world.put("r0", "r1", "r2", "r3")
    world.join("c2", 4)
    world.pull("c2", 4)
    full(world)
    return settle(
        world,
        "c2",
        Window(4),
        3,
        ack=["r0"],
        retry=[Retried("r1", 0, "old", True, ERROR), Retried("r2", 0, "tail", True, ERROR)],
        release=["r3"],
    )


@situation
def settle_of_one_in_a_full_ring(world: World) -> Any:
    worked(world)
    world.put("r0")
    full(world)
    return settle(world, "c2", Window(1), ack=["r0"])
