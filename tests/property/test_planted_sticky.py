"""A search for groups that lose their owners, and tests of that test: planted faults."""

from collections.abc import Sequence

import pytest
import redis
from hypothesis.stateful import run_state_machine_as_test

from rqueue.protocol.scripts import Scripts
from tests.property.planted import Fault, Step, each
from tests.property.sources import sound
from tests.property.sticking import StickingMachine
from tests.property.test_machine import search as searching

POLICY = "policies/sticky.lua"
TELL = "policies/sticky/tell.lua"

OBEY = ("obey", {"pick": 0})


def begin(*windows: int, rebalance: bool = False) -> Step:
    consumers = [(jobs, 0) for jobs in windows]
    return "begin", {"buckets": 1024, "rebalance": rebalance, "consumers": consumers}


def put(*groups: str) -> Step:
    return "put", {"jobs": [(group, 4, 0) for group in groups]}


def pull(pick: int, jobs: int = 0) -> Step:
    return "pull", {"pick": pick, "window": (jobs, 0) if jobs else None}


def settle(outcome: str, pick: int = 0, pulls: bool = False) -> Step:
    return "settle", {"pick": pick, "outcomes": [outcome], "pulls": pulls}


def window(pick: int, jobs: int) -> Step:
    return "interest", {"pick": pick, "window": (jobs, 0)}


GONE: tuple[Step, ...] = (begin(1, 1), put("a", "a"), pull(0), ("leave", {"pick": 0, "dies": True}))

LEFT: tuple[Step, ...] = (
    begin(1, 1),
    put("a", "b"),
    pull(0),
    settle("later", pulls=True),
    pull(1),
    ("join", {"window": (2, 0), "rank": 1}),
    put("", ""),
    ("pass_time", {"ms": 900, "renews": False}),
    pull(2, jobs=1),
)
"""Who takes one of two promotes a job of an owner that has no room, and passes on the other one."""

FAULTS = [
    Fault(
        "who is delivered a job directly does not own its group",
        "policies/sticky/claim.lua",
        "if bucket and consumer then",
        "if false then",
        (begin(1), pull(0), put("a")),
    ),
    Fault(
        "who leaves takes its groups along",
        "policies/sticky/gone.lua",
        "if sticky_free(base, consumer) > 0 and",
        "if false and",
        GONE,
    ),
    Fault(
        "nobody is notified of what becomes free",
        "policies/sticky/reset.lua",
        "if moved > 0 and not queue.paused then",
        "if false then",
        (
            begin(1, 1),
            put("a"),
            pull(0),
            pull(1),
            window(0, 0),
            settle("release"),
            ("reset", {"pick": 0, "all_of_it": False}),
        ),
    ),
    Fault(
        "the ready job of a group that becomes free stays where it was",
        POLICY,
        "redis.call('ZADD', base .. 'heads', unpack(some))",
        "",
        (
            begin(1, 1),
            put("a"),
            pull(0),
            window(0, 0),
            settle("release"),
            ("leave", {"pick": 0, "dies": False}),
        ),
    ),
    Fault(
        "a job that comes back is anybody's",
        POLICY,
        "local owner = owners[i]\n    local its",
        "local owner = false\n    local its",
        (begin(1, 1), put("a"), pull(0), window(0, 0), settle("release")),
    ),
    Fault(
        "an owner is not notified of what comes for it",
        TELL,
        "if name ~= except and redis.call('ZSCORE'",
        "if false and redis.call('ZSCORE'",
        (begin(1, 1), put("a"), pull(0), settle("ack", pulls=True), put("a", "a")),
    ),
    Fault(
        "who takes its part of new groups tells nobody of the rest",
        "policies/sticky/closing.lua",
        "local jobs = left and 1 or 0",
        "local jobs = 0",
        (begin(9, 9), pull(0), pull(1), put("a", "b", "c", "d"), OBEY),
    ),
    Fault(
        "nobody tells where a consumer joins",
        "policies/sticky/joined.lua",
        "if sticky_free(base) > 0 and not queue.paused then",
        "if sticky_free(base) > 9 then",
        (
            begin(1, 1, rebalance=True),
            put("a"),
            pull(0),
            pull(1),
            window(0, 0),
            settle("release"),
            ("join", {"window": (0, 0), "rank": 0}),
        ),
    ),
    Fault(
        "what comes back to its owner stands for work that is left",
        TELL,
        "if not left then jobs",
        "if true then jobs",
        LEFT,
    ),
    Fault(
        "a pull takes from another one's groups",
        POLICY,
        "heads[#heads + 1] = sticky_key(base, name)\n",
        "for i, its in ipairs(sticky_consumers(base)) do heads[i] = sticky_key(base, its) end\n",
        (begin(1, 1), put("a"), pull(0), window(0, 0), settle("release"), pull(1)),
    ),
]


def machine_of(client: redis.Redis, lua: Scripts) -> type[StickingMachine]:
    return type("Machine", (StickingMachine,), {"client": client, "lua": lua})


@pytest.mark.timeout(3600)
def test_groups_stay_with_their_owners(client: redis.Redis) -> None:
    run_state_machine_as_test(machine_of(client, sound()), settings=searching(12, 40))


def play(client: redis.Redis, lua: Scripts, steps: Sequence[Step]) -> None:
    machine = machine_of(client, lua)()
    try:
        for step, arguments in steps:
            getattr(machine, step)(**arguments)
            machine.owners_stay()
            machine.holds()
    finally:
        machine.teardown()


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    play(client, sound(), fault.steps)
    lua = sound().changed(fault.piece)
    with pytest.raises(AssertionError):
        play(client, lua, fault.steps)
