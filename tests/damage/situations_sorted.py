"""What every job takes where jobs go by sort keys."""

from __future__ import annotations

from typing import Any

from rqueue.model.sort_keys import sort_key_text
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from tests.damage.situation import pull, put, settle_each_way, situation, worked
from tests.damage.world import BODY, KEYS, World

A, B = sort_key_text("a"), sort_key_text("b")


@situation
def enqueue_with_a_sort_key_into_a_plain_queue(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, sort=B), Put("n1", BODY)])


@situation
def enqueue_of_sorted_jobs_to_who_waits(world: World) -> Any:
    worked(world)
    world.put("r0", sort=B)
    world.pull("c2", 1)
    world.settle("c2", ack=["r0"])
    world.pull("c2", 1)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, sort=B), Put("n1", BODY, sort=A)])


@situation
def pull_of_sorted_jobs_and_others(world: World) -> Any:
    world.put("r0", "m0", "r1")
    for number in range(4):
        world.put(f"v{number}", sort=sort_key_text(-number))
    world.put("r2", priority=9)
    world.join("c2", 9)
    return pull(world, "c2", Window(9))


@situation
def pull_of_sorted_jobs_that_are_due(world: World) -> Any:
    world.put("r0", sort=B)
    world.put("s0", "s1", delay_ms=1000, sort=A)
    world.put("s2", delay_ms=1000, sort=A, priority=9)
    world.put("s3", delay_ms=1000)
    world.move(2000)
    world.join("c2", 5)
    return pull(world, "c2", Window(5))


@situation
def settle_of_outcomes_of_sorted_jobs(world: World) -> Any:
    for number in range(6):
        world.put(f"r{number}", sort=sort_key_text(number))
    return settle_each_way(world, release=["r5"])


@situation
def enqueue_into_a_full_ring_of_sorted_jobs(world: World) -> Any:
    world.run(commands.configure(KEYS, {"ring_jobs": 2}))
    world.put("r0", sort=B)
    world.put("r1", sort=A, priority=9)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, sort=A), Put("n1", BODY, sort=B)])
