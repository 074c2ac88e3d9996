"""Jobs with limits that come, run, fail, wait and go at random, and limits that change: what must
hold is recounted after each step; and faults of that, planted, are found."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import redis

from rqueue.model.job_limit import JobLimit
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.protocol.commands.consumers import Ran
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from rqueue.protocol.settling import retried
from tests.property.sources import changed, frozen
from tests.support import invariants
from tests.support.profiles import examples
from tests.support.run_script import run
from tests.support.snapshot import take_snapshot

KIND = Kind.of(["limits"])
KEYS = QueueKeys("limits", "property")
SEEDS, STEPS = examples(5, 40), examples(60, 80)
LEASE_MS = 30_000
CONSUMERS = ("c1", "c2", "c3")
LIMITS = (
    JobLimit("crm", 1, "a"),
    JobLimit("crm", 1, "b"),
    JobLimit("crm", 2, "c"),
    JobLimit("all", 3),
    JobLimit("wide", 5),
)


class Course:
    """One course of random steps."""

    def __init__(self, client: redis.Redis, lua: Scripts, seed: int) -> None:
        self.client = client
        self.lua = lua
        self.random = random.Random(seed)
        self.terms: dict[str, str] = {}
        self.jobs = 0
        client.delete(*(client.keys(KEYS.base + "*") or ["none"]))
        self.run(commands.set_limit(KEYS, "other", 1))
        for name in CONSUMERS:
            self.join(name)

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, KIND)
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

    def put(self) -> None:
        puts = []
        for _ in range(self.random.choice([1, 1, 2, 5])):
            self.jobs += 1
            some = self.random.sample(LIMITS, self.random.choice([0, 1, 1, 2, 3]))
            delay = self.random.choice([0, 0, 0, 500])
            limits = tuple(limit.text for limit in some)
            level = self.random.choice([4, 4, 9])
            put = Put(f"j{self.jobs}", b'["t"]', level, delay_ms=delay, limits=limits)
            puts.append(put)
        self.run(commands.enqueue(KEYS, puts))

    def pull(self) -> None:
        name = self.one()
        window = Window(self.random.choice([0, 1, 3, 8]))
        self.run(commands.pull(KEYS, name, self.terms[name], window))

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

    def limit(self) -> None:
        name = self.random.choice(["crm", "crm=a", "all", "wide"])
        self.run(commands.set_limit(KEYS, name, self.random.choice([None, 0, 1, 2, 4])))

    def cancel(self) -> None:
        if self.jobs:
            self.run(commands.cancel(KEYS, f"j{self.random.randint(1, self.jobs)}"))

    def reorder(self) -> None:
        if self.jobs:
            job = (f"j{self.random.randint(1, self.jobs)}", b"", b"")
            self.run(commands.reorder(KEYS, self.random.choice([4, 9, "front"]), [job]))

    def purge(self) -> None:
        if self.random.random() < 0.2:
            self.run(commands.purge(KEYS, 500))

    # -- what must hold ----------------------------------------------------------------------------

    def play(self) -> list[str]:
        steps = [self.lapse, self.leave, self.limit, self.cancel, self.reorder, self.purge]
        often = [self.put, self.put, self.pull, self.pull, self.settle, self.settle, self.time]
        for _ in range(STEPS):
            step = self.random.choice(steps + often)
            step()
            if found := invariants.of_state(take_snapshot(self.client, KEYS)):
                return [f"after {step.__name__}: {one}" for one in found]
        return self.drained()

    def drained(self) -> list[str]:
        """Every job ends where they are all done: none is left behind for want of a permit."""
        for name in ("crm", "crm=a", "all", "wide"):
            self.run(commands.set_limit(KEYS, name, None))
        for _ in range(4 * self.jobs + 20):
            if self.client.hlen(KEYS.jobs) == self.client.zcard(KEYS.dead):
                break
            self.client.hincrby(KEYS.meta, "clock", 700)
            for name in CONSUMERS:
                self.run(commands.pull(KEYS, name, self.terms[name], Window(8)))
                self.run(commands.settle(KEYS, name, self.terms[name], None, ack=self.held(name)))
        look = take_snapshot(self.client, KEYS)
        left = set(look.jobs) - set(look.scores("dead"))
        return [f"{sorted(left)} are left"] if left else invariants.of_state(look)


def test_permits_are_those_of_the_jobs_that_have_them(client: redis.Redis, tmp_path: Path) -> None:
    lua = frozen(tmp_path)
    for seed in range(SEEDS):
        assert Course(client, lua, seed).play() == [], seed


FAULTS = {
    "a retry that waits keeps its permits": (
        "include/finish/unfinished.lua",
        "batch.delayed[#batch.delayed + 1] = job",
        "",
    ),
    "what is done keeps them": (
        "policies/limits.lua",
        "if not claims.err then limits_let_go(base, queue, gone, claims) end",
        "",
    ),
    "what comes back takes them twice": (
        "policies/limits.lua",
        "not has[i] and limits_refusing",
        "limits_refusing",
    ),
    "a permit that the first cannot use is offered to nobody": (
        "policies/limits.lua",
        "      redis.call('ZADD', base .. 'blocked', '0', refusing)\n",
        "      redis.call('ZADD', base .. 'blocked', '0', refusing)\n"
        "      redis.call('ZREM', key, first)\n      do return ready, room end\n",
    ),
    "of several permits one is given": (
        "policies/limits.lua",
        "      ready = ready + 1\n    end",
        "      ready = ready + 1\n      redis.call('ZREM', key, first)\n"
        "      return ready, room\n    end",
    ),
    "a higher limit opens nothing": (
        "policies/limits/allow.lua",
        "if #mine > 0 then",
        "if false then",
    ),
    "a limit that is set does not count": (
        "policies/limits.lua",
        "return LIMITS.most[limit] or tonumber(said)",
        "return tonumber(said)",
    ),
    "who waits for nothing is known as one that does": (
        "policies/limits.lua",
        "if redis.call('EXISTS', key) == 0 then redis.call('ZREM', base .. 'blocked', limit) end\n"
        "  return",
        "return",
    ),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(fault: str, client: redis.Redis, tmp_path: Path) -> None:
    lua = frozen(tmp_path)
    changed(tmp_path, *FAULTS[fault])
    assert any(Course(client, lua, seed).play() for seed in range(SEEDS))
