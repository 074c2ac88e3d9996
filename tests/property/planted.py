"""Faults to be planted in the Lua sources, and how they are found.

Most are found by a machine's search. Those that only a rare course of events shows have that course
written down: the steps of the machine, whose checks must object, and must not without the fault. So
have those that the search finds, but not soon: it looks for them under `make test-all` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from rqueue.protocol.policies import Kind
from tests.property.machine import Machine
from tests.property.sources import Piece, sound
from tests.support.profiles import examples

SEARCH = settings(
    max_examples=300,
    stateful_step_count=50,
    derandomize=True,  # each run searches the same way
    database=None,
    phases=[Phase.generate],
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)

SEARCHES_ALL = bool(examples(False, True))

Step = tuple[str, dict[str, Any]]
"""A rule of the machine, and its arguments."""


@dataclass(frozen=True)
class Fault:
    """A piece of a source, what is planted in its place, and the steps that show it (none: the
    search finds it). found: steps that it found, cut down."""

    name: str
    file: str
    right: str
    wrong: str
    steps: tuple[Step, ...] = ()
    found: tuple[Step, ...] = ()

    @property
    def piece(self) -> Piece:
        """What is changed."""
        return self.file, self.right, self.wrong


def each(faults: Sequence[Fault]) -> pytest.MarkDecorator:
    """The test runs once with each of these as its `fault`."""
    names = [fault.name.replace(" ", "_") for fault in faults]
    return pytest.mark.parametrize("fault", faults, ids=names)


def is_found(
    fault: Fault,
    client: redis.Redis,
    machine: type[Machine] = Machine,
    kinds: Sequence[Kind] = (),
) -> None:
    """Plant a fault and see that it is found; its steps alone are to be fine without it. kinds:
    what the machine's queue may be, where that is not what it says itself."""
    machine = type("Machine", (machine,), {"client": client, "kinds": kinds or machine.kinds})
    steps = fault.steps or (() if SEARCHES_ALL else fault.found)
    if steps:
        machine.lua = sound()
        play(machine(), steps)
    machine.lua = sound().changed(fault.piece)
    if steps:
        with pytest.raises((AssertionError, redis.ResponseError)):
            play(machine(), steps)
        return
    with pytest.raises((AssertionError, redis.ResponseError)):
        run_state_machine_as_test(machine, settings=SEARCH)


def play(machine: Machine, steps: Sequence[Step]) -> None:
    """Take the steps of a fault, and look after each."""
    try:
        for step, arguments in steps:
            getattr(machine, step)(**arguments)
            machine.holds()
    finally:
        machine.teardown()


# -- steps -----------------------------------------------------------------------------------------


def begin(
    *windows: tuple[int, int], ready: int = 0, later: bool = False, first: bool = True
) -> Step:
    """Consumers with these windows, and jobs, which were there before them unless it is said."""
    consumers = [(0, window) for window in windows]
    return "begin", {"consumers": consumers, "ready": ready, "later": later, "first": first}


def enqueue(padding: int = 0, limit: int = 0, known: bool = False, delay: int = 0) -> Step:
    return "enqueue", {"jobs": [(4, delay, padding, limit, 0 if known else 1)], "immediate": False}


def retry_later(return_to: str) -> Step:
    outcomes = [(0, "retry", 800, return_to, True)]
    return "settle", {
        "pick": 0,
        "outcomes": outcomes,
        "others": 0,
        "pull": False,
        "window": None,
    }


def make_ready(*picks: int) -> Step:
    return "promote", {"chosen": list(picks), "parked": False}


def settle(outcome: str, return_to: str = "old", pick: int = 0) -> Step:
    return "settle_one", {"pick": pick, "place": 0, "outcome": outcome, "return_to": return_to}


def pass_time(ms: int) -> Step:
    return "pass_time", {"ms": ms}


def renew(*names: int) -> Step:
    return "renew", {"names": list(names)}


def note_running(*chosen: int, pick: int = 0) -> Step:
    return "note_running", {"pick": pick, "chosen": list(chosen), "stranger": False}


def crash(*charged: int) -> Step:
    """The process of the first consumer dies while it runs these of its jobs."""
    return "leave", {"pick": 0, "dies": True, "charged": list(charged)}


JOIN = (
    "join",
    {"mode": "acquire", "priority": 0, "window": (3, 0), "slots": 1, "lease": 6000},
)
RELEASE_SECOND = (
    "settle_one",
    {"pick": 0, "place": 1, "outcome": "release", "return_to": "old"},
)
HEAR = ("hear", {"pick": 0})
PULL = ("pull", {"pick": 0, "window": None, "recall": False})
OBEY = ("obey", {"pick": 0})
ACK_AND_PULL = (
    "settle",
    {
        "pick": 0,
        "outcomes": [(0, "ack", 0, "old", True)],
        "others": 0,
        "pull": True,
        "window": None,
    },
)
NEXT = ("next_one", {"pick": 0, "outcome": "ack"})
TWO_HELD = (begin((3, 0)), enqueue(), HEAR, enqueue(), OBEY)
LEASE_OVER = pass_time(7000)
PAUSE = RESUME = ("pause_or_resume", {"really": True})
