"""What every job takes where jobs are of shares."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from tests.damage.situation import pull, settle, situation
from tests.damage.world import BODY, ERROR, KEYS, World


def fill(world: World) -> None:
    """Three shares, one of them with a weight and one with more than the others, and jobs of no
    share; c2 holds r0 to r3, one of each."""
    world.run(commands.set_share(KEYS, "b", 3))
    for number, share in enumerate(["a", "b", "c", ""]):
        world.put(f"r{number}", share=share)
    world.join("c2", 4)
    world.pull("c2", 4)
    for share in "aabcab":
        world.put(f"w{world.client.hlen(KEYS.jobs)}", share=share)
    world.put("w", "x", share="")


@situation
def enqueue_of_jobs_of_shares(world: World) -> Any:
    fill(world)
    puts = [Put(f"n{at}", BODY, share=share) for at, share in enumerate(["a", "b", "new", ""])]
    return lambda: commands.enqueue(KEYS, puts)


@situation
def pull_of_jobs_of_shares(world: World) -> Any:
    fill(world)
    return pull(world, "c2", Window(9))


@situation
def pull_of_all_jobs_of_shares(world: World) -> Any:
    fill(world)
    world.put("r6", share="d", delay_ms=1000)
    world.move(1000)
    return pull(world, "c2", Window(30))


@situation
def pull_of_some_of_shares_with_little_room(world: World) -> Any:
    fill(world)
    world.settle("c2", ack=["r0", "r1", "r2", "r3"])
    return pull(world, "c2", Window(9, 70))


@situation
def settle_of_outcomes_of_jobs_of_shares(world: World) -> Any:
    fill(world)
    return settle(
        world,
        "c2",
        Window(9),
        5,
        ack=["r3"],
        retry=[Retried("r1", 0, "old", True, ERROR), Retried("r2", 1000, "head", True, ERROR)],
        release=["r0"],
    )


@situation
def pull_of_jobs_of_shares_with_limits(world: World) -> Any:
    fill(world)
    for number in range(3):
        world.put(f"l{number}", share="a", limits=("crm:2",))
    return pull(world, "c2", Window(9))
