"""Streams do what the model says, whatever becomes of their producers and members; faults that are
planted in them are found."""

from collections.abc import Callable
from functools import partial

import pytest
import redis

from rqueue.errors import CommandRefused
from rqueue.model.parents import LOST_MS
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.scripts import Scripts
from tests.property.flows import CALL
from tests.property.planted import Fault, each
from tests.property.sources import sound
from tests.property.streams import StreamPlayer, play
from tests.support.profiles import examples

SEEDS = examples(2, 40)
"""Searches; each has other streams."""

STEPS = 80


@pytest.mark.parametrize("seed", range(SEEDS))
def test_streams_do_what_the_model_says(client: redis.Redis, queue_name: str, seed: int) -> None:
    live(client, queue_name, sound(), partial(play, seed=seed, steps=STEPS))


POLICY = "policies/flows.lua"
ENDS, WAITS = "include/flow/ends.lua", "include/flow/waits.lua"
DONE, DEFERS, PARENTS, SEAL, UPKEEP = (
    f"policies/flows/{hook}.lua" for hook in ("done", "defers", "parents", "seal", "upkeep")
)

FAULTS = [
    Fault(
        "who waits runs before the seal",
        WAITS,
        "not its.open and total or nil) and heard_all(key, total)",
        "total) and heard_all(key, total)",
    ),
    Fault("any number seals", SEAL, "if count ~= total then", "if false then"),
    Fault(
        "a seal behind the last end wakes nobody",
        SEAL,
        "if FLOWS.gather(base, id, its, total, {}) then",
        "if false then",
    ),
    Fault(
        "a seal forgets to say so",
        SEAL,
        "  redis.call('ZREM', base .. 'unsealed', id)\n",
        "",
    ),
    Fault("a step does not count", PARENTS, "plan.joined[job] = its.total", "plan.joined[job] = 1"),
    Fault("a number may be left out", PARENTS, "place == its.total and", "place >= its.total and"),
    Fault(
        "a member comes twice", PARENTS, "        elseif its.open then", "        elseif false then"
    ),
    Fault("a step renews nothing", DEFERS, "now + FLOWS.LOST_MS", "now + 1"),
    Fault(
        "no producer is ever lost", UPKEEP, "'-inf', string.format('%d', queue.now)", "'-inf', '0'"
    ),
    Fault(
        "what is cancelled waits for its producer",
        POLICY,
        "  redis.call('ZREM', base .. 'unsealed', job.id)\n",
        "",
    ),
    Fault(
        "what stops waits for its producer",
        ENDS,
        "  redis.call('ZREM', base .. 'unsealed', unpack(ids))\n",
        "",
    ),
    Fault("a stream runs at once", DEFERS, "if one.waits.open then", "if false then"),
]


def forget_what_has_ended(player: StreamPlayer) -> None:
    """The records of the first members are gone, and another producer sends these again."""
    player.open("w", "stop")
    (producer,) = player.producers
    player.step(producer, 2)
    for _ in range(2):
        player.settle("a", 0, "ack")
    player.client.delete(player.keys.ended, player.keys.ended_old)
    producer.place = 0
    player.step(producer, 3)
    assert set(player.look().jobs) == {"w", "w.2"}


def leave_one_out(player: StreamPlayer) -> None:
    player.open("w", "stop")
    said = player.said(commands.enqueue(player.keys, [Put("w.1", CALL, counts=True)]))
    assert isinstance(said, CommandRefused)
    player.holds()


def lose_the_producer(player: StreamPlayer) -> None:
    player.open("w", "stop")
    player.step(player.producers[0], 1)
    player.pass_time(LOST_MS)
    player.holds()


PLAYED: dict[str, Callable[[StreamPlayer], None]] = {
    "a member comes twice": forget_what_has_ended,
    "a number may be left out": leave_one_out,
    "no producer is ever lost": lose_the_producer,
}
"""What shows a fault that a search does not meet."""


def live(
    client: redis.Redis, queue_name: str, lua: Scripts, acts: Callable[[StreamPlayer], None]
) -> None:
    """A queue in which these acts are done."""
    player = StreamPlayer(client, queue_name, lua)
    try:
        acts(player)
    finally:
        player.teardown()


FIRST = {"what is cancelled waits for its producer": 11, "what stops waits for its producer": 4}
"""Seeds that find what others do not."""


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis, queue_name: str) -> None:
    played = PLAYED.get(fault.name)
    if played is not None:
        live(client, queue_name, sound(), played)
    first = FIRST.get(fault.name, 0)
    searches = [partial(play, seed=seed, steps=STEPS) for seed in (first, *range(40))]
    lua = sound().changed(fault.piece)
    with pytest.raises((AssertionError, redis.ResponseError)) as found:
        for acts in searches if played is None else [played]:
            live(client, queue_name, lua, acts)
    assert "compiling script" not in str(found.value), "what is planted is no fault but a slip"
