"""What every job takes in a bounded queue: where it fits, and where producers wait for room."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.commands.room import await_room, with_grant
from tests.damage.situation import pull, put, settle, situation, worked
from tests.damage.world import BODY, ERROR, KEYS, World

WAIT_MS = 50_000_000


def bound(world: World, limit: int, *, held: bool = False, resume: int = 100) -> None:
    options = {"max_jobs": limit, "overflow": 1, "resume": resume, "count_held": int(held)}
    world.run(commands.configure(KEYS, options))


def waiting(world: World, *producers: str, jobs: int = 1) -> None:
    """These ask for room, and wait or have a grant."""
    for producer in producers:
        world.run(await_room(KEYS, producer, jobs, WAIT_MS))


@situation
def enqueue_of_one_into_a_bounded_queue(world: World) -> Any:
    bound(world, 5)
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_of_several_into_a_bounded_queue(world: World) -> Any:
    bound(world, 5, held=True)
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY), Put("n1", BODY, priority=9)])


@situation
def enqueue_with_a_grant(world: World) -> Any:
    bound(world, 2, resume=50)
    put(world, "r0")
    waiting(world, "p0", "p1")
    return lambda: with_grant(commands.enqueue(KEYS, [Put("n0", BODY)]), "p0")


@situation
def pull_that_makes_room(world: World) -> Any:
    bound(world, 2)
    put(world, "r0", "r1")
    waiting(world, "p0", "p1", "p2")
    world.join("c2", 2)
    return pull(world, "c2", Window(2))


@situation
def settle_that_makes_room(world: World) -> Any:
    worked(world)
    bound(world, 1, held=True)
    put(world, "r0")
    waiting(world, "p0", "p1")
    return settle(world, "c2", None, ack=["r0"])


@situation
def settle_and_pull_that_make_room(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1")
    bound(world, 1)
    waiting(world, "p0", "p1")
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_a_retry_where_producers_wait(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1")
    bound(world, 1)
    waiting(world, "p0")
    retry = [Retried("r0", 0, "tail", True, ERROR)]
    return settle(world, "c2", Window(1), 0, retry=retry)
