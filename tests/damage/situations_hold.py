"""What every job takes where jobs keep their place until a time."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.policies import Kind
from tests.damage.situation import pull, settle, situation, worked
from tests.damage.world import BODY, ERROR, KEYS, World


def holds(world: World) -> None:
    """The queue has this policy and no other, whatever this client met before."""
    world.run(commands.configure(KEYS, {"v": Kind.of(["hold"]).stamp}))


def due(world: World, *ids: str) -> None:
    """The time of these has come, and nobody has looked."""
    world.put(*ids, hold=True, delay_ms=1000)
    world.move(2000)


@situation
def enqueue_of_one_that_is_held(world: World) -> Any:
    holds(world)
    worked(world)
    return lambda: commands.enqueue(
        KEYS, [Put("n0", BODY, delay_ms=500, hold=True), Put("n1", BODY, priority=9)]
    )


@situation
def pull_of_what_was_held(world: World) -> Any:
    holds(world)
    world.put("r0")
    due(world, "h0", "h1")
    world.put("r1")
    world.join("c2", 5, 500)
    return pull(world, "c2", Window(5, 500))


@situation
def settle_of_what_was_held(world: World) -> Any:
    holds(world)
    due(world, "h0", "h1", "h2", "h3")
    world.join("c2", 3)
    world.pull("c2", 3)
    return settle(
        world,
        "c2",
        Window(3),
        2,
        ack=["h0"],
        retry=[Retried("h1", 0, "old", True, ERROR)],
        release=["h2"],
    )
