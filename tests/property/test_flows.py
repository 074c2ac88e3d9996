"""Workflows do what the model says, whatever happens to their jobs; faults that are planted in them
are found."""

from collections.abc import Callable
from functools import partial

import pytest
import redis

from rqueue.model.parents import Parents
from rqueue.protocol.scripts import SCRIPTS, Scripts
from tests.property.flows import Job, Player, play
from tests.property.planted import Fault, each
from tests.property.sources import sound
from tests.support.profiles import examples

SEEDS = examples(2, 40)
"""Searches; each has other workflows."""

STEPS = 60


@pytest.mark.parametrize("seed", range(SEEDS))
def test_workflows_do_what_the_model_says(client: redis.Redis, queue_name: str, seed: int) -> None:
    player = Player(client, queue_name, SCRIPTS)
    try:
        play(player, seed, STEPS)
    finally:
        player.teardown()


POLICY = "policies/flows.lua"
HEARD = "include/flow/heard.lua"
ENDS = "include/flow/ends.lua"
PASS, DONE, DEFERS = (f"policies/flows/{hook}.lua" for hook in ("pass", "done", "defers"))

FAULTS = [
    Fault(
        "a failure counts for a job that is to stop",
        ENDS,
        "(its.policy == 'c' or its.policy == 'f')",
        "true",
    ),
    Fault("nobody hears of a failure", PASS, "if not job.again then", "if false then"),
    Fault("a job that comes again has ended", PASS, "if not job.again then", "if true then"),
    Fault("nobody hears of a success", DONE, "if its and not its.ids then", "if false then"),
    Fault(
        "whom a job names hears of no success",
        DONE,
        "    if queue.waits == 'named' then",
        "    if false then",
    ),
    Fault("whose parents failed stops alone", ENDS, "    left = left - #ends", "    ends = {}"),
    Fault(
        "it waits no more and is noted still",
        ENDS,
        "  redis.call('HDEL', base .. 'deferred', unpack(ids))\n"
        "  redis.call('UNLINK', unpack(keys))\n"
        "  --- @each left(base, ids)\n  schedule_add",
        "  redis.call('UNLINK', unpack(keys))\n  --- @each left(base, ids)\n  schedule_add",
    ),
    Fault(
        "results are kept for who was cancelled",
        POLICY,
        "  redis.call('UNLINK', base .. 'gathered:' .. job.id, base .. 'heard:' .. job.id)\n"
        "  redis.call('HDEL', base .. 'stops'",
        "  redis.call('HDEL', base .. 'stops'",
    ),
    Fault(
        "who waits for the dead hears nothing of the living",
        ENDS,
        "if not FLOWS.may_return(base, ends[i]) then",
        "if true then",
    ),
    Fault(
        "who watches the schedule is not woken",
        ENDS,
        "if not queue.paused and not queue.pulls then",
        "if false then",
    ),
    Fault(
        "who ended before is forgotten",
        HEARD,
        "  local words, count, format = ",
        "  redis.call('DEL', key)\n  local words, count, format = ",
    ),
    Fault("parents that have ended count not", DEFERS, "if ended then", "if false then"),
    Fault(
        "who waits for nobody never runs", DEFERS, "if one.waits.total == 0 then", "if false then"
    ),
    Fault(
        "a callback of a failure is made after a success",
        ENDS,
        "one.ok and its.policy ~= 'f'",
        "one.ok",
    ),
    Fault(
        "who waits for a dead letter waits for one that is purged",
        ENDS,
        "elseif its.policy ~= 'w' or not FLOWS.may_return(base, one) then",
        "elseif its.policy ~= 'w' then",
    ),
    Fault("a job may be cut in two by its results", ENDS, "'[;|]', { [';']", "'[|]', { [';']"),
]


def cancel_one_that_has_results(player: Player) -> None:
    chord = Job("w", Parents(2, "results", "stop"), "")
    player.enqueue(chord, Job("w.0", None, ""), Job("w.1", None, ""))
    player.settle("a", 0, "done")
    player.cancel("w")
    player.holds()


def requeue_one_that_is_waited_for(player: Player) -> None:
    player.enqueue(Job("first", None, ""))
    player.enqueue(Job("then", Parents(1, "nothing", "wait", ("first",)), ""))
    player.settle("a", 0, "reject")
    player.requeue("first")
    player.settle("a", 0, "done")
    player.holds()


PLAYED: dict[str, Callable[[Player], None]] = {
    "results are kept for who was cancelled": cancel_one_that_has_results,
    "who waits for the dead hears nothing of the living": requeue_one_that_is_waited_for,
}
"""What shows a fault that a search seldom meets."""


def live(
    client: redis.Redis, queue_name: str, lua: Scripts, acts: Callable[[Player], None]
) -> None:
    """A queue in which these acts are done."""
    player = Player(client, queue_name, lua)
    try:
        acts(player)
    finally:
        player.teardown()


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis, queue_name: str) -> None:
    played = PLAYED.get(fault.name)
    if played is not None:
        live(client, queue_name, sound(), played)
    searches = [partial(play, seed=seed, steps=STEPS) for seed in range(40)]
    lua = sound().changed(fault.piece)
    with pytest.raises((AssertionError, redis.ResponseError)) as found:
        for acts in searches if played is None else [played]:
            live(client, queue_name, lua, acts)
    assert "compiling script" not in str(found.value), "what is planted is no fault but a slip"
