"""Every combination of policies that a queue may have keeps what must always hold."""

import pytest
import redis

from rqueue.protocol.policies import POLICIES, Kind
from tests.property.combining import ARMS, Combined, kinds
from tests.support.profiles import examples

STEPS = 40
SEEDS = examples(1, 4, thorough=20, brief=1)
PAIRS = [*kinds(1), *kinds(2)]
TRIED = [*kinds(1), *kinds(2)[:: examples(6, 1)]]
"""All of them under `make test-all`."""


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


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", TRIED, ids=str)
def test_what_must_always_hold_holds(
    client: redis.Redis, queue_name: str, kind: Kind, seed: int
) -> None:
    combined = Combined(client, queue_name, kind, seed)
    try:
        for _ in range(STEPS):
            combined.step()
        combined.empty()
    finally:
        combined.teardown()
