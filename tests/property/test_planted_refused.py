"""A search for consumers that get what they refused, and tests of that test: planted faults."""

from collections.abc import Sequence

import pytest
import redis
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from rqueue.protocol.scripts import Scripts
from tests.property.planted import SEARCH, Fault, Step, each
from tests.property.refusing import RefusingMachine
from tests.property.sources import sound
from tests.property.test_machine import search as searching

POLICY = "policies/refusals.lua"
TELL = "policies/refusals/tell.lua"

OBEY = ("obey", {"pick": 0})
ONE = ("put", {"jobs": [(4, 0)]})


def refuse(pulls: bool) -> Step:
    return "settle", {"pick": 0, "outcomes": ["refuse"], "pulls": pulls}


def begin(consumers: int) -> Step:
    """So many, with windows of one."""
    return "begin", {"kept": True, "consumers": [(1, 0)] * consumers}


def pull(pick: int) -> Step:
    return "pull", {"pick": pick, "window": None}


FAULTS = [
    Fault(
        "nobody is passed over",
        POLICY,
        "return terms == '' or not string.find(",
        "return true or not string.find(",
    ),
    Fault(
        "one more refusal forgets those before it",
        POLICY,
        "if one ~= term then terms[#terms + 1] = tonumber(one) end",
        "",
        (begin(2), ONE, refuse(False), OBEY, refuse(False), pull(0)),
    ),
    Fault(
        "who waits is notified without being asked what it takes",
        TELL,
        "if term and refusals_takes(term, terms) then",
        "if term then",
        (begin(3), ONE, refuse(True), OBEY, pull(2), refuse(False)),
    ),
    Fault(
        "who refuses and pulls tells nobody",
        "policies/refusals/closing.lua",
        "if REFUSALS.fresh_any and not queue.paused then",
        "if false then",
    ),
    Fault(
        "a higher consumer is ahead of what it refused",
        "include/refusal/ranks.lua",
        "if refusals_takes(one[2], terms) and",
        "if",
        (begin(1), ("join", {"window": (1, 0), "rank": 1}), ONE, refuse(True), OBEY),
    ),
]


def search(client: redis.Redis, lua: Scripts, how: settings) -> None:
    machine = type("Machine", (RefusingMachine,), {"client": client, "lua": lua})
    run_state_machine_as_test(machine, settings=how)


@pytest.mark.timeout(3600)
def test_no_consumer_gets_what_it_refused(client: redis.Redis) -> None:
    search(client, sound(), searching(15, 40))


def play(client: redis.Redis, lua: Scripts, steps: Sequence[Step]) -> None:
    machine = type("Machine", (RefusingMachine,), {"client": client, "lua": lua})()
    try:
        for step, arguments in steps:
            getattr(machine, step)(**arguments)
            machine.holds()
    finally:
        machine.teardown()


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    play(client, sound(), fault.steps)
    lua = sound().changed(fault.piece)
    with pytest.raises(AssertionError):
        if fault.steps:
            play(client, lua, fault.steps)
        else:
            search(client, lua, SEARCH)
