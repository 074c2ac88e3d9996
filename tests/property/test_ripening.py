"""A step finds the queue as if each job had become ready at the moment when it was due."""

import pytest
import redis

from rqueue.protocol import scripts
from rqueue.protocol.policies import POLICIES, Kind
from rqueue.protocol.scripts import SCRIPTS
from tests.property.arms import kinds
from tests.property.ripening import Prompt
from tests.property.sources import sound
from tests.support.profiles import examples

STEPS = 60
SEEDS = examples(3, 12, thorough=60, brief=1)
LOOKS = {name for name in POLICIES if "ripen" in SCRIPTS.policy(name).hooks}
"""Policies that compare jobs."""


def compares(kind: Kind) -> bool:
    """True if due jobs matter to it. Jobs with a time to live end in sweeps of their own, and a
    ring of bytes makes room once for several jobs that are due."""
    apart = {"ttl", "ring_bytes"}
    return bool(LOOKS & {*kind.policies}) and not apart & {*kind.policies}


PAIRS = [kind for kind in kinds(2) if compares(kind)]
TRIED = [*filter(compares, kinds(1)), *PAIRS[:: examples(9, 1)]]
COURSES = [(kind, seed) for kind in TRIED for seed in range(SEEDS)]


def course(client: redis.Redis, name: str, kind: Kind, seed: int) -> None:
    pair = Prompt(client, name, kind, seed)
    try:
        for _ in range(STEPS):
            pair.step()
    finally:
        pair.teardown()


@pytest.mark.parametrize(("kind", "seed"), COURSES, ids=str)
def test_a_late_look_finds_what_a_prompt_one_would_have_left(
    client: redis.Redis, queue_name: str, kind: Kind, seed: int
) -> None:
    course(client, queue_name, kind, seed)


RIPEN = "--- @each ripen(base, queue)\n"
PLANTED = {
    "an enqueue compares before it looks": ("last_value", "enqueue.lua", f"  {RIPEN}"),
    "a settle passes a turn on before it looks": (
        "groups",
        "settle.lua",
        "    --- @each ripen(base, queue, tonumber(jobs) >= 0 and consumer or nil)\n",
    ),
    "a job is cancelled before the look": ("limits", "cancel.lua", RIPEN),
    "an enqueue looks at no tick": (
        "last_value schedules",
        "enqueue.lua",
        "--- @each timed(base, first)\n",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_step_that_does_not_look_is_found(
    client: redis.Redis, queue_name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies, file, right = PLANTED[what]
    monkeypatch.setattr(scripts, "SCRIPTS", sound().changed((file, right, "")))
    with pytest.raises(AssertionError, match="prompt and late"):
        for seed in range(40):
            course(client, queue_name, Kind.of(policies.split()), seed)
