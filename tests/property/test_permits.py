"""Numbers of permits that are wrong are set right while the queue goes on, by what was seen at one
moment: once, though two do it; and jobs that are gone lose theirs, and no others."""

from __future__ import annotations

import pytest
import redis

from rqueue.protocol import commands
from rqueue.protocol.commands import Miscount
from rqueue.protocol.commands.limit_notes import PermitsState, permits_state
from rqueue.protocol.policies import Kind
from rqueue.transport.redis_client import execute
from tests.property.planted import Fault, each
from tests.property.sources import sound
from tests.property.test_limits import KEYS, LimitCourse
from tests.support import invariants
from tests.support.profiles import examples

SEEDS, ROUNDS = examples(2, 40), 6
TO_FIND = 8
"""Courses in which each planted fault is found."""
NAMES = ("crm=a", "crm=b", "crm=c", "all", "wide", "@api=a", "@api=b", "@pace")
REPAIR = "policies/limits/repair.lua"


class Miscounting(LimitCourse):
    """A course of steps in which permits are miscounted, and counted again."""

    def some(self, count: int) -> None:
        steps = [self.lapse, self.limit, self.cancel, self.put, self.put, self.pull, self.pull]
        for _ in range(count):
            self.random.choice([*steps, self.settle, self.settle, self.time])()

    def damage(self) -> None:
        """More permits are out than jobs have, and one is that of a job that is gone."""
        for limit in self.random.sample(NAMES, 3):
            self.client.hincrby(KEYS.permits, limit, self.random.randrange(1, 4))
        if self.random.randrange(2):
            self.client.hset(KEYS.claims, f"gone{self.random.randrange(9)}", "all")
            self.client.hincrby(KEYS.permits, "all", 1)

    def seen(self) -> PermitsState:
        return execute(self.client, permits_state(KEYS))

    def repair(self, state: PermitsState, by: str) -> None:
        """All limits, by what was seen; each job that had permits then is suspected."""
        counted, out = state.counted, state.out
        for limit in sorted({*NAMES, *counted, *out}):
            miscount = Miscount(counted.get(limit, 0) - out.get(limit, 0), state.corrected_by, by)
            ids = [id_ for id_, limits in state.claims.items() if limit in limits]
            self.run(commands.repair_group(KEYS, limit, None, miscount, ids))

    def play(self) -> list[str]:
        for round_ in range(ROUNDS):
            self.some(8)
            self.damage()
            state = self.seen()
            self.some(5)
            self.repair(state, f"one{round_}")
            if found := invariants.of_state(self.look()):
                return found
            self.some(3)
            self.repair(state, f"two{round_}")  # who saw the same comes too late
            if found := invariants.of_state(self.look()):
                return found
        return self.drained()


class InShares(Miscounting):
    """The same where jobs that are ready stand behind the first ones of their shares."""

    KIND = Kind.of(["limits", "shares"])


@pytest.mark.parametrize("course", [Miscounting, InShares])
def test_what_is_miscounted_is_set_right_while_jobs_come_and_go(
    course: type[Miscounting], client: redis.Redis
) -> None:
    for seed in range(SEEDS):
        assert course(client, sound(), seed).play() == [], seed


FAULTS = [
    Fault("two may set it right", REPAIR, "or last ~= seen.last and last ~= seen.by", ""),
    Fault("of one look one limit is set right", REPAIR, " and last ~= seen.by", ""),
    Fault("what was seen is what is there", REPAIR, "tonumber(said) or 0) + seen", "0) + seen"),
    Fault("who is ready loses permits", REPAIR, "spots[i] == 'heads' or", "false and"),
    Fault("who is held loses permits", REPAIR, "  return held(id)", "  return false"),
    Fault("who is gone keeps permits", REPAIR, "  return held(id)", "  return true"),
    Fault("what the gone had is out still", REPAIR, "limits_return(base, claims)", "{}"),
]


BEHIND = Fault(
    "who is ready behind another loses permits",
    REPAIR,
    "or string.find(spots[i], '.', 1, true) then",
    "then",
)


@each([*FAULTS, BEHIND])
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    course = InShares if fault is BEHIND else Miscounting
    lua = sound().changed(fault.piece)
    assert any(course(client, lua, seed).play() for seed in range(TO_FIND))
