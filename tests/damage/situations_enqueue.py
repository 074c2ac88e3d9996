"""Enqueues, in all the ways that jobs come to a plain queue."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Note, Put
from tests.damage.situation import put, situation, worked
from tests.damage.world import BODY, KEYS, World


@situation
def enqueue_of_one(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_into_a_new_queue(world: World) -> Any:
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_waits(world: World) -> Any:
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_waits_for_several(world: World) -> Any:
    worked(world, jobs=5, bytes=500)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_watches_the_schedule(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    world.pull("c3", 1)
    world.pull("c2", 1)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_at_once_or_not(world: World) -> Any:
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)], immediate=True)


@situation
def enqueue_of_a_level(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, priority=9)])


@situation
def enqueue_of_a_level_to_who_waits(world: World) -> Any:
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, priority=9)])


@situation
def enqueue_of_several_levels(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(
        KEYS, [Put(f"n{n}", BODY, priority=n, max_deliveries=2) for n in (0, 4, 6, 9)]
    )


@situation
def enqueue_for_later(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000), Put("n1", BODY)])


@situation
def enqueue_for_later_where_some_wait(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000)])


@situation
def enqueue_sooner_than_is_watched(world: World) -> Any:
    world.put("s0", delay_ms=5_000_000)
    worked(world)
    worked(world, "c3")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000)])


@situation
def enqueue_of_a_batch(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(9)])


@situation
def enqueue_of_a_batch_to_some_who_wait(world: World) -> Any:
    for name in ("c2", "c3", "c4"):
        worked(world, name, 3)
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(7)])


@situation
def enqueue_where_consumers_are_ranked(world: World) -> Any:
    worked(world)
    world.join("c3", 2, priority=5)
    world.join("c4", 2, priority=3)
    world.pull("c3", 2)
    world.put("r0", "r1")
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(7)])


@situation
def enqueue_with_browsers(world: World) -> Any:
    put(world, "r0")
    world.join("b1", 5, mode="browse")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_with_a_note(world: World) -> Any:
    put(world, "r0")
    first = Note("run", 1, 0, 0, 600_000, b"12345678")
    world.run(commands.enqueue_alike(KEYS, ["w0", BODY], note=first))
    note = Note("run", 1, 0, 8, 600_000, b"12345678")
    return lambda: commands.enqueue_alike(KEYS, ["n0", BODY], note=note)


@situation
def enqueue_with_a_first_note(world: World) -> Any:
    worked(world)
    note = Note("run", 1, 0, 0, 600_000, b"12345678")
    return lambda: commands.enqueue_alike(KEYS, ["n0", BODY, "n1", BODY], note=note)
