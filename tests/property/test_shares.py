"""Jobs of shares that come, run, fail, wait and go at random, with limits or without: what must
hold is recounted after each step, and a model of virtual time says who has the next turn; faults of
that, planted, are found."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from rqueue.model.job import parse_value
from rqueue.model.job_limit import JobLimit
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.protocol.commands.consumers import Ran
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import POLICIES, Kind
from rqueue.protocol.scripts import Scripts
from rqueue.protocol.settling import retried
from tests.property.sharing import Turns
from tests.property.sources import START_MS, changed, frozen
from tests.support import invariants
from tests.support.profiles import examples
from tests.support.run_script import run
from tests.support.snapshot import Snapshot, take_snapshot

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
SEEDS, STEPS = examples(4, 40), examples(60, 80)
LEASE_MS = 30_000
CONSUMERS = ("c1", "c2", "c3")
SHARES = ("", "a", "b", "c", "d")
WEIGHTS = {"a": 1, "b": 2, "c": 7}
LIMITS = (JobLimit("crm", 1, "a"), JobLimit("crm", 2, "b"), JobLimit("all", 3))


class Course:
    """One course of random steps."""

    def __init__(self, client: redis.Redis, lua: Scripts, kind: str, seed: int) -> None:
        self.client = client
        self.lua = lua
        self.kind = KINDS[kind]
        self.random = random.Random(seed)
        self.terms: dict[str, str] = {}
        self.jobs = 0
        self.alone = kind == "alone"
        client.delete(*(client.keys(KEYS.base + "*") or ["none"]))
        for share, weight in WEIGHTS.items():
            self.run(commands.set_share(KEYS, share, weight))
        for name in CONSUMERS:
            self.join(name)

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, self.kind)
        return call.read(run(self.client, script, list(call.keys), list(call.args)))

    def join(self, name: str) -> None:
        window = Window(self.random.choice([1, 3, 8]))
        call = commands.register(KEYS, name, window=window, lease_ms=LEASE_MS)
        self.terms[name] = self.run(call).term

    def one(self) -> str:
        return self.random.choice(CONSUMERS)

    def held(self, name: str) -> list[str]:
        found: Any = self.client.lrange(KEYS.held(name), 0, -1)
        return [id_.decode() for id_ in found]

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

    def settle(self) -> None:
        """Each job that a consumer holds has another fate, or stays."""
        name = self.one()
        fates: dict[str, list[Any]] = {"ack": [], "retry": [], "release": [], "reject": []}
        for id_ in self.held(name):
            fate = self.random.choice(["ack", "ack", "retry", "release", "reject", "stay"])
            if fate == "retry":
                place, delay = self.random.choice(
                    [("", 0.0), ("", 0.5), ("tail", 0.0), ("tail", 0.5)]
                )
                fates[fate].append(retried(id_, delay, {}, place, True))
            elif fate == "reject":
                fates[fate].append((id_, b"{}"))
            elif fate != "stay":
                fates[fate].append(id_)
        window = self.random.choice([None, Window(3)])
        self.run(commands.settle(KEYS, name, self.terms[name], window, **fates))

    def lapse(self) -> None:
        """The lease of one ends: its jobs come back, and wait a while where they ran."""
        name = self.one()
        if self.held(name) and self.random.random() < 0.5:
            self.run(commands.note_running(KEYS, name, [Ran(self.held(name)[0], 1, 1)]))
        others = [other for other in CONSUMERS if other != name]
        self.run(commands.renew(KEYS, 1, [name]))
        self.client.hincrby(KEYS.meta, "clock", 2)
        self.run(commands.renew(KEYS, LEASE_MS, others))
        self.join(name)

    def leave(self) -> None:
        name = self.one()
        self.run(commands.unregister(KEYS, name, self.terms[name]))
        self.join(name)

    def time(self) -> None:
        self.client.hincrby(KEYS.meta, "clock", 300)

    def weigh(self) -> None:
        share = self.random.choice([*WEIGHTS, "*"])
        self.run(commands.set_share(KEYS, share, self.random.choice([None, 1, 3, 10, 1000])))

    def cancel(self) -> None:
        if self.jobs:
            self.run(commands.cancel(KEYS, f"j{self.random.randint(1, self.jobs)}"))

    def reorder(self) -> None:
        if self.jobs:
            job = (f"j{self.random.randint(1, self.jobs)}", b"", b"")
            self.run(commands.reorder(KEYS, self.random.choice([4, 9, "front"]), [job]))

    def purge(self) -> None:
        if self.random.random() < 0.3:
            self.run(commands.purge(KEYS, self.random.choice([2, 5, 500])))

    def requeue(self) -> None:
        dead: Any = self.client.zrange(KEYS.dead, 0, 1)
        if dead:
            self.run(commands.requeue(KEYS, [id_.decode() for id_ in dead]))

    def look(self) -> Snapshot:
        """As the scripts see it, whose clock moves as the course says."""
        return replace(take_snapshot(self.client, KEYS), read_ms=START_MS)

    # -- what must hold ----------------------------------------------------------------------------

    def play(self) -> list[str]:
        steps = [self.lapse, self.leave, self.weigh, self.cancel, self.reorder, self.purge]
        often = [self.put, self.put, self.pull, self.pull, self.settle, self.settle, self.time]
        for _ in range(STEPS):
            step = self.random.choice([*steps, *often, self.cancel, self.requeue])
            found = step() or []
            if found := [*found, *invariants.of_state(self.look())]:
                return [f"after {step.__name__}: {one}" for one in found]
        return self.drained()

    def drained(self) -> list[str]:
        """Every job ends where they are all done, in the order of each share; nothing is left."""
        for _ in range(4 * self.jobs + 20):
            if self.client.hlen(KEYS.jobs) == self.client.zcard(KEYS.dead):
                break
            self.client.hincrby(KEYS.meta, "clock", 700)
            for name in CONSUMERS:
                had = len(self.held(name))
                self.run(commands.pull(KEYS, name, self.terms[name], Window(8)))
                if found := self.disordered(self.held(name)[had:]):
                    return found
                self.run(commands.settle(KEYS, name, self.terms[name], None, ack=self.held(name)))
        look = self.look()
        left = set(look.jobs) - set(look.scores("dead"))
        strays = {"strands", "lined", "turns", "heads", "blocked"} & look.keys.keys()
        strays |= {key for key in look.keys if key.startswith(("served:", "group:"))}
        wrong = [f"{sorted(strays)} are left"] if strays else []
        return [f"{sorted(left)} are left"] if left else wrong + invariants.of_state(look)

    def disordered(self, took: list[str]) -> list[str]:
        """Whether jobs of one share that a pull took are not in the order of their places."""
        last: dict[tuple[int, str], tuple[bool, int, int]] = {}
        wrong, look = [], self.look()
        for id_ in took:
            head = parse_value(look.jobs[id_])[0]
            place = not head.due_ms, head.due_ms, head.position
            before = last.get((head.level, head.share))
            if head.share and not head.limits and before and place < before:
                wrong.append(f"{id_} at {place} was taken after one at {before}")
            last[head.level, head.share] = place if not head.limits else before or place
        return wrong


@pytest.mark.parametrize("kind", KINDS, ids=lambda name: name.replace(" ", "_"))
def test_shares_take_turns_whatever_happens(kind: str, client: redis.Redis, tmp_path: Path) -> None:
    lua = frozen(tmp_path)
    for seed in range(SEEDS):
        assert Course(client, lua, kind, seed).play() == [], seed


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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(fault: str, client: redis.Redis, tmp_path: Path) -> None:
    lua = frozen(tmp_path)
    changed(tmp_path, *FAULTS[fault])
    assert any(Course(client, lua, "alone", seed).play() for seed in range(2 * SEEDS))
