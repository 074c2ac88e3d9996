"""What every job takes where consumers stand by, and where dead letters go to another queue."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from tests.damage.situation import pull, settle, situation
from tests.damage.world import BATCH, BODY, ERROR, KEYS, World


def _exclusive(world: World) -> None:
    """c2 is live, c3 stands by."""
    world.run(commands.configure(KEYS, {"live_consumers": 1}))
    world.join("c2", 2)
    world.join("c3", 2)


@situation
def pull_of_the_live_one(world: World) -> Any:
    _exclusive(world)
    world.put("r0", "r1", "r2")
    return pull(world, "c2", Window(2))


@situation
def pull_of_one_that_stands_by(world: World) -> Any:
    _exclusive(world)
    world.put("r0")
    return pull(world, "c3", Window(5))


@situation
def enqueue_to_the_live_one(world: World) -> Any:
    _exclusive(world)
    world.pull("c2", 2)
    world.pull("c3", 2)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def settle_of_the_live_one(world: World) -> Any:
    _exclusive(world)
    world.put("r0", "r1", "r2")
    world.pull("c2", 2)
    return settle(world, "c2", Window(2), rows=2, ack=["r0", "r1"])


def _alternate(world: World) -> None:
    world.run(commands.configure(KEYS, {"dead_to": "other", "expired_to": "other", "ttl_ms": 9000}))
    world.put("x0", "x1", "r0", "r1")
    world.join("c2", 3)
    world.pull("c2", 3)


@situation
def settle_of_dead_letters_that_go_elsewhere(world: World) -> Any:
    _alternate(world)
    last = Retried("x1", 0, "old", True, ERROR)
    world.run(commands.configure(KEYS, {"max_deliveries": 1}))
    return settle(world, "c2", Window(3), rows=3, ack=["r0"], reject=[("x0", ERROR)], retry=[last])


@situation
def enqueue_that_makes_an_alert(world: World) -> Any:
    world.run(commands.configure(KEYS, {"alert_depth": 2}))
    world.put("r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def settle_of_failed_jobs_that_are_discarded(world: World) -> Any:
    world.run(commands.configure(KEYS, {"dead_letters": 0, "max_deliveries": 2}))
    world.put("x0", "x1", "r0", "r1")
    world.join("c2", 3)
    world.pull("c2", 3)
    world.settle("c2", retry=[Retried("x1", 0, "old", True, ERROR)])
    world.pull("c2", 3)
    last = Retried("x1", 0, "old", True, ERROR)
    return settle(world, "c2", Window(3), rows=3, ack=["r0"], reject=[("x0", ERROR)], retry=[last])


@situation
def pull_of_expired_jobs_that_go_elsewhere(world: World) -> Any:
    _alternate(world)
    world.settle("c2", ack=["x0", "x1", "r0"], batch=BATCH, rows=3)
    world.put("e0", ttl_ms=100)
    world.move(2000)
    return pull(world, "c2", Window(3))
