"""What every job takes where jobs name limits."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from tests.damage.situation import pull, settle, situation
from tests.damage.world import BODY, ERROR, KEYS, World

ONE, BOTH, RATE = ("crm:1",), ("crm=a:2", "all:9"), ("@r=a:2/1000+2*1",)


def held(world: World, *limits: tuple[str, ...]) -> None:
    """Jobs that name these, r0 and so on, that c2 holds; behind them one waits for each."""
    for number, some in enumerate(limits):
        world.put(f"r{number}", limits=some)
    world.join("c2", len(limits))
    world.pull("c2", len(limits))
    for number, some in enumerate(limits):
        world.put(f"w{number}", limits=some)


@situation
def enqueue_of_limited_jobs(world: World) -> Any:
    held(world, ONE, BOTH, BOTH)
    puts = [Put(f"n{at}", BODY, limits=some) for at, some in enumerate((ONE, BOTH, (), ("new:1",)))]
    return lambda: commands.enqueue(KEYS, puts)


@situation
def pull_of_limited_jobs(world: World) -> Any:
    held(world, ONE, BOTH)
    world.put("r5", limits=BOTH)
    world.put("r6", limits=ONE, delay_ms=1000)
    world.client.sadd(KEYS.reopened, "all")
    world.move(1000)
    return pull(world, "c2", Window(9))


@situation
def settle_of_one_limited_job(world: World) -> Any:
    held(world, ONE)
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_outcomes_of_limited_jobs(world: World) -> Any:
    held(world, ONE, BOTH, BOTH, ("own:1",), ("other:2",), ("other:2",))
    return settle(
        world,
        "c2",
        Window(9),
        5,
        ack=["r0"],
        retry=[Retried("r1", 0, "old", True, ERROR), Retried("r2", 1000, "head", True, ERROR)],
        reject=[("r3", ERROR)],
        release=["r4"],
    )


@situation
def pull_of_jobs_of_a_rate(world: World) -> Any:
    for number in range(5):
        world.put(f"r{number}", limits=RATE)
    world.join("c2", 9)
    return pull(world, "c2", Window(9))


@situation
def pull_of_tokens_that_are_due(world: World) -> Any:
    for number in range(5):
        world.put(f"r{number}", limits=RATE)
    world.join("c2", 9)
    world.pull("c2", 9)
    world.move(1000)
    return pull(world, "c2", Window(9))


@situation
def settle_of_jobs_of_a_rate(world: World) -> Any:
    held(world, RATE, RATE)
    return settle(
        world, "c2", Window(9), 5, ack=["r0"], retry=[Retried("r1", 0, "old", True, ERROR)]
    )
