"""What every job takes where jobs wait for others, and what producers and supervisors do there."""

from __future__ import annotations

from typing import Any

from rqueue.model.parents import LOST_MS, Parents
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window, streams
from tests.damage.situation import settle, situation
from tests.damage.world import BODY, ERROR, KEYS, World

CHORD = Parents(2).text
STREAM = Parents(0, streamed=True).text


def open_stream(world: World, members: int) -> None:
    world.put("w0", waits=STREAM)
    for number in range(members):
        world.put(f"w0.{number}", counts=True)


def held(world: World, count: int) -> None:
    world.join("c2", count)
    world.pull("c2", count)


@situation
def enqueue_of_a_workflow(world: World) -> Any:
    world.put("x", waits=CHORD)
    world.put("x.0", counts=True)
    held(world, 1)
    puts = [
        Put("w0", BODY, waits=CHORD),
        Put("w0.0", BODY, counts=True),
        Put("w0.1", BODY, counts=True, delay_ms=5000),
        Put("x.1", BODY, counts=True),
        Put("n0", BODY, waits=Parents(1, "result", "stop", ("x.0",)).text),
    ]
    return lambda: commands.enqueue(KEYS, puts)


@situation
def enqueue_of_members_of_a_stream(world: World) -> Any:
    open_stream(world, 2)
    puts = [Put(f"w0.{number}", BODY, counts=True) for number in range(1, 5)]
    return lambda: commands.enqueue(KEYS, puts)


@situation
def settle_of_the_last_member(world: World) -> Any:
    world.put("w0", waits=CHORD)
    world.put("w0.0", counts=True)
    world.put("w0.1", counts=True)
    held(world, 2)
    world.settle("c2", ack=["w0.0"])
    return settle(world, "c2", Window(2), ack=["w0.1"])


@situation
def settle_of_a_member_of_a_stream(world: World) -> Any:
    open_stream(world, 2)
    held(world, 2)
    world.settle("c2", ack=["w0.0"])
    return settle(world, "c2", Window(2), ack=["w0.1"])


@situation
def settle_of_a_member_that_failed(world: World) -> Any:
    open_stream(world, 2)
    world.put("n0", waits=Parents(1, "nothing", "stop", ("w0",)).text)
    held(world, 2)
    return settle(world, "c2", Window(2), reject=[("w0.1", ERROR)])


@situation
def seal_of_a_stream(world: World) -> Any:
    open_stream(world, 2)
    held(world, 1)
    return lambda: streams.seal(KEYS, "w0", 2)


@situation
def seal_behind_the_end_of_all(world: World) -> Any:
    open_stream(world, 2)
    held(world, 2)
    world.settle("c2", ack=["w0.0", "w0.1"])
    world.join("c3", 1)
    world.pull("c3", 1)
    return lambda: streams.seal(KEYS, "w0", 2)


@situation
def renewal_that_finds_a_producer_lost(world: World) -> Any:
    open_stream(world, 2)
    world.put("n0", waits=Parents(1, "nothing", "stop", ("w0",)).text)
    world.join("c2", 1)
    world.move(LOST_MS + 1000)
    return lambda: commands.renew(KEYS, 60_000, ["c2"])
