"""Jobs of shares that come, run, fail, wait and go at random, with limits or without: what must
hold is recounted after each step, and a model of virtual time says who has the next turn; faults of
that, planted, are found."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from rqueue.model.job import parse_value
from rqueue.model.job_limit import JobLimit
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import POLICIES, Kind
from rqueue.protocol.scripts import Scripts
from rqueue.protocol.settling import retried
from tests.property.course import Course
from tests.property.sharing import Turns
from tests.property.sources import sound
from tests.support.profiles import examples

KINDS = {
    "alone": Kind.of(["shares"]),
    **{
        f"with {name}": Kind.of(["shares", name])
        for name, policy in POLICIES.items()
        if name not in ("shares", "deleting", "levels", "sharded")
        and not any("shares" in POLICIES[one].excludes for one in (name, *policy.requires))
    },
    "with others": Kind.of(["shares", "limits", "ttl", "bounded", "unique", "exclusive", "alerts"]),
}
KEYS = QueueKeys("shares", "property")
SEEDS, STEPS = examples(1, 40), examples(60, 80)
TO_FIND = 8
"""Courses in which each planted fault is found."""

SHARES = ("", "a", "b", "c", "d")
WEIGHTS = {"a": 1, "b": 2, "c": 7}
LIMITS = (JobLimit("crm", 1, "a"), JobLimit("crm", 2, "b"), JobLimit("all", 3))


class ShareCourse(Course):
    """One course of random steps, with weights that change."""

    KEYS = KEYS

    def __init__(self, client: redis.Redis, lua: Scripts, kind: str, seed: int) -> None:
        self.alone = kind == "alone"
        super().__init__(client, lua, KINDS[kind], seed)

    def begin(self) -> None:
        for share, weight in WEIGHTS.items():
            self.run(commands.set_share(KEYS, share, weight))

    # -- steps -------------------------------------------------------------------------------------

    def put(self) -> list[str]:
        puts, has = [], self.kind.policies
        for _ in range(self.random.choice([1, 1, 2, 5, 12])):
            self.jobs += 1
            some = self.random.sample(LIMITS, self.random.choice([0, 0, 1, 2]))
            put = Put(
                f"j{self.jobs}",
                b'["t"]',
                self.random.choice([4, 4, 4, 9]),
                delay_ms=self.random.choice([0, 0, 0, 500]),
                ttl_ms=self.random.choice([0, 0, 700]) if "ttl" in has else 0,
                limits=tuple(one.text for one in some) if "limits" in has else (),
                share=self.random.choice(SHARES),
            )
            puts.append(put)
        before = Turns(self.look())
        self.run(commands.enqueue(KEYS, puts))
        return before.began(self.look())

    def pull(self) -> list[str]:
        name = self.one()
        window = Window(self.random.choice([0, 1, 3, 8]), self.random.choice([0, 0, 0, 120]))
        return self.seen(lambda: commands.pull(KEYS, name, self.terms[name], window), name)

    def seen(self, call: Any, name: str) -> list[str]:
        """What is wrong with the turns of what a step takes, where nothing else moves in it."""
        before, had = self.look(), len(self.held(name))
        self.run(call())
        took, after = self.held(name)[had:], self.look()
        due = any(score <= before.now for score in before.scores("scheduled").values())
        if not self.alone or due:
            return []
        turns = Turns(before)
        return [*turns.taken(took), *(turns.agree(after) if took else [])]

    def leave(self) -> list[str]:
        name = self.one()
        call = commands.unregister(KEYS, name, self.terms[name])
        wrong = self.returned(call, self.held(name), counted=False)
        self.join(name)
        return wrong

    def release(self) -> list[str]:
        """Some of what a consumer holds goes back unstarted."""
        name = self.one()
        held = self.held(name)
        some = self.random.sample(held, self.random.randint(0, len(held)))
        term, freed = self.terms[name], self.freed(some)
        call = commands.settle(KEYS, name, term, None, release=some, freed=freed)
        return self.returned(call, some, counted=False)

    def fail(self) -> list[str]:
        """One that a consumer holds is tried again, at its old place."""
        name = self.one()
        some = self.held(name)[:1]
        fates = [retried(id_, 0.0, {}, "", True) for id_ in some]
        term, freed = self.terms[name], self.freed(some)
        call = commands.settle(KEYS, name, term, None, retry=fates, freed=freed)
        return self.returned(call, some, counted=True)

    def returned(self, call: ScriptCall[Any], ids: list[str], *, counted: bool) -> list[str]:
        """What is wrong with the turns after these jobs, and no others, came back."""
        before = self.look()
        self.run(call)
        gone = any(before.jobs.get(id_, b"!").startswith(b"!") for id_ in ids)
        return Turns(before).back(ids, self.look(), counted) if self.alone and not gone else []

    def weigh(self) -> None:
        share = self.random.choice([*WEIGHTS, "*"])
        self.run(commands.set_share(KEYS, share, self.random.choice([None, 1, 3, 10, 1000])))

    def purge(self) -> None:
        if self.random.random() < 0.3:
            self.run(commands.purge(KEYS, self.random.choice([2, 5, 500])))

    def requeue(self) -> None:
        dead: Any = self.client.zrange(KEYS.dead, 0, 1)
        if dead:
            self.run(commands.requeue(KEYS, [id_.decode() for id_ in dead]))

    # -- what must hold ----------------------------------------------------------------------------

    def play(self) -> list[str]:
        steps = [self.lapse, self.leave, self.release, self.fail, self.weigh, self.cancel]
        steps += [self.cancel, self.reorder, self.purge, self.requeue]
        often = [self.put, self.put, self.pull, self.pull, self.settle, self.settle, self.time]
        return self.played(steps + often, STEPS)

    def drained(self) -> list[str]:
        """The jobs of each share come in their order, and nothing is left of shares."""
        found, look = super().drained(), self.look()
        strays = {"strands", "lined", "turns", "heads", "blocked"} & look.keys.keys()
        strays |= {key for key in look.keys if key.startswith(("served:", "group:"))}
        return found or ([f"{sorted(strays)} are left"] if strays else [])

    def took(self, ids: list[str]) -> list[str]:
        """Whether jobs of one share that a pull took are not in the order of their places."""
        last: dict[tuple[int, str], tuple[bool, int, int]] = {}
        wrong, look = [], self.look()
        for id_ in ids:
            head = parse_value(look.jobs[id_])[0]
            place = not head.due_ms, head.due_ms, head.position
            before = last.get((head.level, head.share))
            if head.share and not head.limits and before and place < before:
                wrong.append(f"{id_} at {place} was taken after one at {before}")
            last[head.level, head.share] = place if not head.limits else before or place
        return wrong


@pytest.mark.parametrize("kind", KINDS, ids=lambda name: name.replace(" ", "_"))
def test_shares_take_turns_whatever_happens(kind: str, client: redis.Redis) -> None:
    for seed in range(SEEDS):
        assert ShareCourse(client, sound(), kind, seed).play() == [], seed


FAULTS = {
    "a share that comes back begins at nothing": (
        "policies/shares.lua",
        "starts[strand] = math.max(time or 0, ",
        "starts[strand] = math.max(0, ",
    ),
    "who empties its share has paid nothing": (
        "policies/shares.lua",
        "tonumber(served[i] or nil) or 0)",
        "0)",
    ),
    "a delivery costs all the same": (
        "policies/shares.lua",
        "local weight = SHARES.weights[name] or SHARES.default",
        "local weight = 1",
    ),
    "the next of a strand keeps the tag of the one before": (
        "policies/shares/deal.lua",
        "open[#open + 1] = shares_score(number, one.tag)",
        "open[#open + 1] = one.score",
    ),
    "a strand that gave several away gets the wrong head": (
        "policies/shares/deal.lua",
        "one.used) or {}",
        "1) or {}",
    ),
    "who comes back before the head stands behind it": (
        "policies/shares.lua",
        "not its.first or shares_earlier(its[1], its.first)",
        "not its.first",
    ),
    "the head that makes way is lost": (
        "policies/shares.lua",
        "        its[#its + 1] = its.first\n",
        "",
    ),
    "a cancelled head leaves its turn to nobody": (
        "policies/shares.lua",
        "  if not said or string.sub(said, SHARES_DIGITS + 1) ~= member then return 'ready' end\n",
        "  do return 'ready' end\n",
    ),
    "who stands behind is not counted": (
        "policies/shares.lua",
        "  for level, count in pairs(lined) do shares_line(base, level, count) end\n",
        "",
    ),
    "what comes back unstarted is paid for": (
        "policies/shares/refund.lua",
        "math.floor((tag - unit * SHARES_UNIT) * weight / SHARES_UNIT) - count",
        "math.floor((tag - unit * SHARES_UNIT) * weight / SHARES_UNIT)",
    ),
    "all that comes back is paid back once": (
        "policies/shares/refund.lua",
        "(its.counts[strand] or 0) + 1",
        "1",
    ),
    "what failed is paid back": (
        "include/finish/unfinished.lua",
        "if not counts and (verb == 'release' or aside) then batch.refunded",
        "if true then batch.refunded",
    ),
    "a level that rests keeps its time": (
        "policies/shares/deal.lua",
        "dealt.rest = taken.count - start, not waits",
        "dealt.rest = taken.count - start, false",
    ),
    "a strand is passed over while the lists have their turn": (
        "policies/shares/deal.lua",
        "      if not one.ended then shares_insert(order, one) end\n",
        "      if not one.ended then table.insert(order, one) end\n",
    ),
    "a purge leaves strands their heads": (
        "policies/shares/cleared.lua",
        "if #gone > 0 then",
        "if false then",
    ),
}


FIRST = {"a purge leaves strands their heads": 7}
"""Seeds that find what others do not."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(fault: str, client: redis.Redis) -> None:
    lua = sound().changed(FAULTS[fault])
    first = FIRST.get(fault, 0)
    seeds = (first, *range(TO_FIND))
    assert any(ShareCourse(client, lua, "alone", seed).play() for seed in seeds)
