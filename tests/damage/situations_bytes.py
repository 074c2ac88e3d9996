"""What every job takes where a limit counts bytes."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.commands.room import with_grant
from rqueue.protocol.result_wait import await_result
from tests.damage.situation import pull, put, settle, situation, worked
from tests.damage.situations_bounded import waiting
from tests.damage.world import BODY, ERROR, KEYS, World

SIZE = len(BODY)


def bound(world: World, jobs: int, *, held: bool = False) -> None:
    """Room for so many jobs of BODY."""
    options = {"max_bytes": jobs * SIZE, "overflow": 1, "resume": 100, "count_held": int(held)}
    world.run(commands.configure(KEYS, options))


def ring(world: World, jobs: int) -> None:
    world.run(commands.configure(KEYS, {"ring_bytes": jobs * SIZE}))


@situation
def enqueue_where_bytes_count(world: World) -> Any:
    bound(world, 5)
    put(world, "r0")
    puts = [Put("n0", BODY), Put("n1", BODY, priority=9), Put("n2", BODY, delay_ms=500)]
    return lambda: commands.enqueue(KEYS, puts)


@situation
def enqueue_with_a_grant_of_bytes(world: World) -> Any:
    bound(world, 2)
    put(world, "r0")
    waiting(world, "p0", "p1")
    return lambda: with_grant(commands.enqueue(KEYS, [Put("n0", BODY)]), "p0")


@situation
def pull_where_bytes_count(world: World) -> Any:
    bound(world, 2)
    put(world, "r0", "r1")
    waiting(world, "p0", "p1", "p2")
    world.join("c2", 2)
    return pull(world, "c2", Window(2))


@situation
def settle_where_bytes_of_held_jobs_count(world: World) -> Any:
    bound(world, 2, held=True)
    worked(world)
    put(world, "r0")
    return settle(world, "c2", None, ack=["r0"])


@situation
def settle_of_outcomes_where_bytes_count(world: World) -> Any:
    bound(world, 10)
    world.put("r0", "r1", "r2", "r3")
    world.join("c2", 4)
    world.pull("c2", 4)
    retry = [Retried("r1", 0, "tail", True, ERROR), Retried("r2", 800, "old", True, ERROR)]
    return settle(world, "c2", Window(4), 3, ack=["r0"], retry=retry, release=["r3"])


@situation
def enqueue_into_a_full_ring_of_bytes(world: World) -> Any:
    ring(world, 2)
    world.put("w0", "w1")
    world.run(await_result(KEYS, "w0", wait=True))
    puts = [Put("n0", BODY, priority=9), Put("n1", BODY), Put("n2", BODY, delay_ms=500)]
    return lambda: commands.enqueue(KEYS, puts)


@situation
def pull_of_what_is_due_in_a_ring_of_bytes(world: World) -> Any:
    ring(world, 2)
    world.put("w0", "w1")
    world.put("s0", "s1", delay_ms=1000)
    world.move(2000)
    world.join("c2", 5)
    return pull(world, "c2", Window(5))


@situation
def settle_of_outcomes_in_a_ring_of_bytes(world: World) -> Any:
    world.put("r0", "r1", "r2")
    world.join("c2", 4)
    world.pull("c2", 4)
    ring(world, 2)
    world.put("w0", "w1")
    retry = [Retried("r1", 0, "tail", True, ERROR)]
    return settle(world, "c2", Window(4), 2, ack=["r0"], retry=retry, release=["r2"])
