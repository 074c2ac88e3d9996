"""What every job takes where jobs have a time to live."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.result_wait import await_result
from tests.damage.situation import pull, put, settle, situation, worked
from tests.damage.world import BODY, ERROR, KEYS, World

LONG = 50_000_000
"""ms that outlast all that happens here."""


def expire(world: World, *ids: str, **terms: Any) -> None:
    """The time to live of these is over, and nobody has looked."""
    world.put(*ids, ttl_ms=1000, **terms)
    world.move(2000)


@situation
def enqueue_with_a_ttl_into_a_plain_queue(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, ttl_ms=5000), Put("n1", BODY)])


@situation
def enqueue_with_a_ttl_to_who_waits(world: World) -> Any:
    world.run(commands.configure(KEYS, {"ttl_ms": LONG}))
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_with_a_ttl_for_later(world: World) -> Any:
    world.put("r0", ttl_ms=LONG)
    return lambda: commands.enqueue(
        KEYS, [Put("n0", BODY, ttl_ms=900, delay_ms=500), Put("n1", BODY, priority=9, ttl_ms=900)]
    )


@situation
def enqueue_that_sweeps(world: World) -> Any:
    world.put("r0", "r2", ttl_ms=1000)
    world.put("r1", ttl_ms=LONG)
    world.run(await_result(KEYS, "r0", wait=True))
    world.move(2000)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, ttl_ms=5000)])


@situation
def enqueue_that_sweeps_into_the_dead_letters(world: World) -> Any:
    world.run(commands.configure(KEYS, {"ttl_dead": 1}))
    world.put("r0", "r1", ttl_ms=1000)
    expire(world, "r2", priority=9)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, ttl_ms=5000)])


@situation
def enqueue_that_sweeps_what_another_had_no_room_for(world: World) -> Any:
    world.join("c2", 5, 60)
    world.put("r0")
    world.put("r1", ttl_ms=1000)
    world.pull("c2", 5, 60)
    world.move(2000)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, ttl_ms=5000)])


@situation
def pull_of_one_with_a_ttl(world: World) -> Any:
    world.join("c2", 1)
    world.put("r0", "r1", ttl_ms=LONG)
    return pull(world, "c2", Window(1))


@situation
def pull_of_all_with_a_ttl(world: World) -> Any:
    world.join("c2", 5, 500)
    world.put("r0", "r1", ttl_ms=LONG)
    return pull(world, "c2", Window(5, 500))


@situation
def pull_with_a_ttl_while_others_wait(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.run(commands.pause(KEYS))
    world.put("r0", "r1", "r2", priority=9, ttl_ms=LONG)
    world.put("r3", "r4", "r5")
    world.run(commands.resume(KEYS))
    return pull(world, "c2", Window(2))


@situation
def pull_of_what_expired(world: World) -> Any:
    world.put("e0")
    expire(world, "r0", "r1")
    world.join("c2", 1)
    return pull(world, "c2", Window(5))


@situation
def pull_of_what_expired_and_of_what_is_too_big(world: World) -> Any:
    world.put("r0", "m0", ttl_ms=LONG)
    world.put("e0", ttl_ms=1000)
    world.put("r1", "r2", ttl_ms=LONG)
    world.put("e1", ttl_ms=1000)
    world.put("r3", ttl_ms=LONG)
    world.run(commands.cancel(KEYS, "m0"))
    world.join("c2", 9, 100)
    world.move(2000)
    return pull(world, "c2", Window(9, 100))


@situation
def pull_of_what_expired_into_the_dead_letters(world: World) -> Any:
    world.run(commands.configure(KEYS, {"ttl_dead": 1}))
    worked(world)
    world.run(commands.pause(KEYS))
    world.put("r0", "r1", ttl_ms=1000)
    world.put("r2", ttl_ms=LONG)
    world.run(await_result(KEYS, "r0", wait=True))
    world.run(commands.resume(KEYS))
    world.move(2000)
    return pull(world, "c2", Window(5))


@situation
def pull_that_sweeps(world: World) -> Any:
    world.put("r0", ttl_ms=LONG)
    expire(world, "r1", "r2")
    world.join("c2", 1)
    return pull(world, "c2", Window(1))


@situation
def pull_of_what_is_due_and_expired(world: World) -> Any:
    worked(world)
    world.put("s0", "s1", ttl_ms=1001, delay_ms=1000)
    world.put("s2", ttl_ms=LONG, delay_ms=1000)
    world.put("s3", ttl_ms=LONG, delay_ms=1000, priority=9)
    world.move(2000)
    return pull(world, "c2", Window(2))


@situation
def settle_of_one_with_the_next_and_a_ttl(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1", "r2", ttl_ms=LONG)
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_whose_next_expired(world: World) -> Any:
    worked(world)
    world.put("r0", ttl_ms=LONG)
    expire(world, "r1", "r2")
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_several_with_a_ttl(world: World) -> Any:
    world.join("c2", 3, 500)
    world.put("r0", "r1", "r2", "r3", "r4", ttl_ms=LONG)
    world.pull("c2", 3, 500)
    expire(world, "e0")
    return settle(world, "c2", Window(3, 500), 3, ack=["r0", "r1"], done=[("r2", None, b"7")])


@situation
def settle_of_outcomes_with_a_ttl(world: World) -> Any:
    worked(world, jobs=9)
    world.put("r0", "r1", "r2", "r3", "r4", ttl_ms=LONG)
    world.pull("c2", 9)
    return settle(
        world,
        "c2",
        None,
        5,
        ack=["r0"],
        retry=[
            Retried("r1", 0, "old", True, ERROR),
            Retried("r2", 0, "tail", True, ERROR),
            Retried("r3", 1000, "head", True, ERROR),
        ],
        release=["r4"],
    )


@situation
def settle_of_a_release_that_expired(world: World) -> Any:
    worked(world, jobs=2)
    world.put("r0", "r1", ttl_ms=1000)
    world.pull("c2", 2)
    world.move(2000)
    return settle(world, "c2", None, 0, release=["r0"])


@situation
def settle_of_retries_that_expired(world: World) -> Any:
    world.run(commands.configure(KEYS, {"ttl_dead": 1}))
    worked(world, jobs=9)
    world.put("r0", "r1", "r2", "r3", ttl_ms=1000)
    world.pull("c2", 9)
    world.run(await_result(KEYS, "r0", wait=True))
    world.move(2000)
    return settle(
        world,
        "c2",
        Window(9),
        3,
        ack=["r3"],
        retry=[
            Retried("r0", 0, "old", True, ERROR),
            Retried("r1", 9000, "head", True, ERROR),
            Retried("r2", 9000, "park", False, b'{"reason":"unknown"}'),
        ],
    )
