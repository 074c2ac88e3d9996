"""Every combination of policies that a queue may have keeps what must always hold."""

import random
from dataclasses import dataclass

import pytest
import redis

from rqueue.protocol import scripts
from rqueue.protocol.policies import POLICIES, Kind
from tests.property.arms import ARMS, kinds
from tests.property.combining import Combined
from tests.property.sources import sound
from tests.support.profiles import examples

STEPS = 40
SEEDS = examples(1, 4, thorough=20, brief=1)
PAIRS = [*kinds(1), *kinds(2)]
TRIPLES = kinds(3)
_SOME = random.Random("three at once").sample(TRIPLES, examples(5, len(TRIPLES), brief=4))
_TRIED = [*kinds(1), *kinds(2)[:: examples(25, 1)]]
COURSES = [(kind, seed) for kind in _TRIED for seed in range(SEEDS)]
COURSES += [(kind, seed) for kind in _SOME for seed in range(examples(1, 1, thorough=4))]
"""All kinds under `make test-all`."""


def test_each_policy_is_drawn() -> None:
    """A new one says how it is put to use, and is tried with each that it goes with."""
    assert ARMS.keys() == POLICIES.keys()
    drawn = {policy for kind in PAIRS for policy in kind.policies}
    assert drawn == {policy for policy in POLICIES if not ARMS[policy].inside} | {
        "levels",
        "outbox",
    }
    asked = [name for name in POLICIES if not ARMS[name].inside]
    missing = [
        (one, other)
        for one in asked
        for other in asked
        if one < other
        and other not in POLICIES[one].excludes
        and one not in POLICIES[other].excludes
        and not any({one, other} <= {*kind.policies} for kind in PAIRS)
        and not _cannot(one, other)
    ]
    assert missing == []


def _cannot(one: str, other: str) -> bool:
    """Whether what one of them brings along excludes the other."""
    brought = {one, other, *POLICIES[one].requires, *POLICIES[other].requires}
    return any(brought & {*POLICIES[name].excludes} for name in brought)


def course(client: redis.Redis, name: str, kind: Kind, seed: int) -> None:
    """One queue of this kind from its beginning until it is empty."""
    combined = Combined(client, name, kind, seed)
    try:
        for _ in range(STEPS):
            combined.step()
        combined.empty()
    finally:
        combined.teardown()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "seed"), COURSES, ids=str)
def test_what_must_always_hold_holds(
    client: redis.Redis, queue_name: str, kind: Kind, seed: int
) -> None:
    course(client, queue_name, kind, seed)


@dataclass(frozen=True)
class Meeting:
    """A fault where two policies meet: neither alone shows it."""

    policies: tuple[str, str]
    file: str
    right: str


MEETINGS = {
    "a group does not go on behind a job that expired": Meeting(
        ("ttl", "groups"),
        "policies/ttl/dropped.lua",
        "      --- @each placed = unblock(base, queue, job)\n",
    ),
    "who expired keeps its unique key": Meeting(
        ("ttl", "unique"),
        "policies/ttl/dropped.lua",
        "  --- @each pass(base, queue, gone)\n",
    ),
    "the envelope that replaces another one is not weighed": Meeting(
        ("max_bytes", "unique"),
        "policies/unique/replace.lua",
        "      --- @each weigh(base, how.now, { one.id, header .. envelope }, 'scheduled')\n",
    ),
}
ALONE, TOGETHER = 5, 40
"""Courses: of each alone none finds it, of both together one does."""


@pytest.mark.parametrize("what", MEETINGS)
def test_a_fault_where_two_policies_meet_is_found(
    client: redis.Redis,
    queue_name: str,
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    its = MEETINGS[what]
    lua = sound().changed((its.file, its.right, ""))
    monkeypatch.setattr(scripts, "SCRIPTS", lua)
    for policy in its.policies:
        for seed in range(ALONE):
            course(client, queue_name, Kind.of([policy]), seed)
    with pytest.raises(AssertionError):
        for seed in range(TOGETHER):
            course(client, queue_name, Kind.of(its.policies), seed)
