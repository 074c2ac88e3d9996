"""A situation: a queue as it is when a call is interesting, and the call. What they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis

from rqueue.protocol import commands
from rqueue.protocol.commands import Retried, ScriptCall, Window
from tests.damage.world import BATCH, ERROR, KEYS, World

Setting = Callable[[World], Callable[[], ScriptCall[Any]]]
"""Brings a new queue to where the call is interesting; the call, made anew each time."""

SITUATIONS: dict[str, Setting] = {}


def situation(make: Setting) -> Setting:
    SITUATIONS[make.__name__.replace("_", " ")] = make
    return make


def make(client: redis.Redis, name: str) -> tuple[World, Callable[[], ScriptCall[Any]]]:
    client.flushdb()
    world = World(client)
    call = SITUATIONS[name](world)
    return world.keep(), call


def put(world: World, *ids: str, **terms: Any) -> None:
    """One after the other: the first is delivered to who waits."""
    for id in ids:
        world.put(id, **terms)


def worked(world: World, name: str = "c2", jobs: int = 1, bytes: int = 0) -> None:
    """A plain queue on which this consumer has had a job, and waits."""
    world.put("k0")
    world.join(name, jobs, bytes)
    world.pull(name, jobs, bytes)
    done(world, name, "k0", Window(jobs, bytes))


def done(world: World, name: str, id: str, window: Window | None) -> None:
    term = world.terms[name]
    world.run(commands.settle(KEYS, name, term, window, ack=[id], batch=BATCH, rows=1, freed=20))


def failed(world: World) -> None:
    """A dead letter, errors of a job that waits, and one that is scheduled."""
    world.put("x0", "e0", "s0")
    world.join("c3", 3)
    world.pull("c3", 3)
    world.settle("c3", reject=[("x0", ERROR)])
    world.settle("c3", retry=[Retried("e0", 0, "old", True, ERROR)])
    world.settle("c3", retry=[Retried("s0", 5_000_000, "head", True, ERROR)])
    world.run(commands.unregister(KEYS, "c3", world.terms["c3"]))


def settle(
    world: World, name: str, window: Window | None, rows: int = 1, **outcomes: Any
) -> Callable[[], ScriptCall[Any]]:
    term = world.terms[name]
    return lambda: commands.settle(
        KEYS, name, term, window, freed=20, batch=BATCH, rows=rows, **outcomes
    )


def settle_each_way(world: World, **more: Any) -> Callable[[], ScriptCall[Any]]:
    """One consumer takes all that is ready, and settles r0 to r4 with an outcome each."""
    world.join("c2", 9)
    world.pull("c2", 9)
    retry = [
        Retried("r1", 0, "old", True, ERROR),
        Retried("r2", 0, "tail", True, ERROR),
        Retried("r3", 1000, "head", True, ERROR),
    ]
    reject = [("r4", ERROR)]
    return settle(world, "c2", Window(9), 4, ack=["r0"], retry=retry, reject=reject, **more)


def pull(world: World, name: str, window: Window, recall: int | None = None) -> Any:
    return lambda: commands.pull(KEYS, name, world.terms[name], window, recall=recall)
