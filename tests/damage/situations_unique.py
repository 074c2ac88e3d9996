"""What every job takes where jobs are unique."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from tests.damage.situation import pull, settle, situation
from tests.damage.world import BODY, ERROR, KEYS, World


def held(world: World, *uniques: str) -> None:
    """Jobs with these keys, r0 and so on, that c2 holds."""
    for number, unique in enumerate(uniques):
        world.put(f"r{number}", unique=unique)
    world.join("c2", len(uniques))
    world.pull("c2", len(uniques))


@situation
def enqueue_of_unique_jobs(world: World) -> Any:
    held(world, "ex:k0", "sx:k1")
    world.put("r2", unique="ex:k2")
    world.put("r3", unique="500x:k3", delay_ms=5000)
    uniques = ["ex:k0", "sx:k1", "ex:k2", "500x:k3", "ex:k4", "500x:k5", ""]
    puts = [Put(f"n{number}", BODY, unique=unique) for number, unique in enumerate(uniques)]
    return lambda: commands.enqueue(KEYS, puts)


@situation
def enqueue_that_replaces(world: World) -> Any:
    held(world, "800t:k0")
    world.put("r1", unique="sr:k1")
    world.put("r2", unique="sd:k2", delay_ms=5000)
    uniques = {"n0": "800t:k0", "n1": "sr:k1", "n2": "sd:k2", "n3": "sr:k3", "n4": "sr:k3"}
    puts = [
        Put(id, BODY[:-1] + b"    ]", delay_ms=500 if id == "n2" else 0, unique=unique)
        for id, unique in uniques.items()
    ]
    return lambda: commands.enqueue(KEYS, puts)


@situation
def enqueue_that_only_replaces(world: World) -> Any:
    world.put("r2", unique="sd:k2", delay_ms=5000)
    put = Put("n2", BODY[:-1] + b"    ]", delay_ms=500, unique="sd2000:k2")
    return lambda: commands.enqueue(KEYS, [put])


@situation
def pull_of_unique_jobs(world: World) -> Any:
    held(world, "900x:k9")
    world.settle("c2", ack=["r0"])
    world.put("r1", unique="sx:k1")
    world.put("r2", unique="ex:k2")
    world.put("r3", unique="ex:k3", delay_ms=1000)
    world.move(1000)
    return pull(world, "c2", Window(9))


@situation
def settle_of_one_unique_job(world: World) -> Any:
    held(world, "ex:k0")
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_outcomes_of_unique_jobs(world: World) -> Any:
    held(world, "ex:k0", "sx:k1", "sx:k2", "ex:k3", "sx:k4", "500x:k5")
    return settle(
        world,
        "c2",
        Window(9),
        5,
        ack=["r0", "r5"],
        retry=[Retried("r1", 0, "old", True, ERROR), Retried("r2", 1000, "head", True, ERROR)],
        reject=[("r3", ERROR)],
        release=["r4"],
    )
