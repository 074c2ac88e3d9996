"""Consumers that come, leave and lose their leases at random, beside a model of who is live and who
stands by; and faults of that, planted, are found."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from tests.property.sources import sound
from tests.support import invariants
from tests.support.profiles import examples
from tests.support.run_script import run
from tests.support.snapshot import take_snapshot

KIND = Kind.of(["exclusive"])
KEYS = QueueKeys("succession", "property")
SEEDS, STEPS = examples(2, 6), 60
TO_FIND = 6
"""Courses in which each planted fault is found."""
LEASE_MS = 30_000


@dataclass
class One:
    """A consumer as the model knows it."""

    term: str
    priority: int
    turn: int
    live: bool
    held: list[str] = field(default_factory=list)


class Course:
    """One course of random steps."""

    def __init__(self, client: redis.Redis, lua: Scripts, seed: int) -> None:
        self.client = client
        self.lua = lua
        self.random = random.Random(seed)
        self.there: dict[str, One] = {}
        self.most = 1
        self.turn = self.jobs = 0
        client.delete(*(client.keys(KEYS.base + "*") or ["none"]))
        self.run(commands.configure(KEYS, {"live_consumers": 1}))

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, KIND)
        return call.read(run(self.client, script, list(call.keys), list(call.args)))

    @property
    def live(self) -> set[str]:
        return {name for name, one in self.there.items() if one.live}

    @property
    def standbys(self) -> list[str]:
        found = [name for name, one in self.there.items() if not one.live]
        return sorted(found, key=lambda name: (-self.there[name].priority, self.there[name].turn))

    def take_over(self) -> None:
        while self.standbys and (self.most == 0 or len(self.live) < self.most):
            self.there[self.standbys[0]].live = True

    # -- steps -------------------------------------------------------------------------------------

    def join(self) -> None:
        self.turn += 1
        name, priority = f"c{self.turn}", self.random.choice([0, 0, 5, -5])
        window = Window(self.random.choice([0, 1, 3]))
        call = commands.register(KEYS, name, priority=priority, window=window, lease_ms=LEASE_MS)
        live = self.most == 0 or len(self.live) < self.most
        self.there[name] = One(self.run(call).term, priority, self.turn, live)

    def leave(self) -> None:
        if name := self.one():
            self.run(commands.unregister(KEYS, name, self.there.pop(name).term))
            self.take_over()

    def lapse(self) -> None:
        """The lease of one ends; the others are renewed."""
        if name := self.one():
            del self.there[name]
            self.run(commands.renew(KEYS, 1, [name]))
            self.client.hincrby(KEYS.meta, "clock", 2)
            self.run(commands.renew(KEYS, LEASE_MS, list(self.there)))
            self.take_over()

    def limit(self) -> None:
        self.most = self.random.choice([0, 1, 1, 2, 3])
        self.run(commands.configure(KEYS, {"live_consumers": self.most}))
        self.take_over()

    def put(self) -> None:
        self.jobs += 1
        self.run(commands.enqueue(KEYS, [Put(f"j{self.jobs}", b'["t"]')]))

    def pull(self) -> None:
        if name := self.one():
            one = self.there[name]
            self.run(commands.pull(KEYS, name, one.term, Window(self.random.choice([0, 1, 3]))))

    def grant(self) -> None:
        if name := self.one():
            window = Window(self.random.choice([0, 2]))
            self.run(commands.interest(KEYS, name, self.there[name].term, window))

    def settle(self) -> None:
        if name := self.one():
            held: Any = self.client.lrange(KEYS.held(name), 0, -1)
            done = {self.random.choice(["ack", "release"]): [id_.decode() for id_ in held]}
            window = self.random.choice([None, Window(2)])
            self.run(commands.settle(KEYS, name, self.there[name].term, window, **done))

    def one(self) -> str:
        return self.random.choice(sorted(self.there)) if self.there else ""

    # -- what must hold ----------------------------------------------------------------------------

    def wrong(self) -> list[str]:
        found = []
        live: Any = self.client.smembers(KEYS.live)
        standbys: Any = self.client.zrange(KEYS.standbys, 0, -1)
        if {name.decode() for name in live} != self.live:
            found.append(f"{live} are live, not {self.live}")
        if [name.decode() for name in standbys] != self.standbys:
            found.append(f"{standbys} stand by, not {self.standbys}")
        look = take_snapshot(self.client, KEYS)
        for name in self.standbys:
            if look.consumers[name]["state"] != "not_interested" or self.client.llen(
                KEYS.held(name)
            ):
                found.append(f"{name} stands by, and is notified of work or holds some")
        return found + invariants.of_state(look)

    def play(self) -> list[str]:
        steps = [self.join, self.join, self.join, self.leave, self.leave, self.lapse, self.limit]
        often = [self.put, self.pull, self.pull, self.settle, self.grant]
        for _ in range(STEPS):
            step = self.random.choice(steps + often)
            step()
            if found := self.wrong():
                return [f"after {step.__name__}: {one}" for one in found]
        return []


def test_who_is_live_is_who_the_model_says(client: redis.Redis) -> None:
    """Q-68."""
    for seed in range(SEEDS):
        assert Course(client, sound(), seed).play() == [], seed


FAULTS = {
    "a stand-by pulls": (
        "include/pull/pull.lua",
        "  if standby then\n",
        "  if false then\n",
    ),
    "one that stands by gets credit, and waits": (
        "interest.lua",
        "if standby then free = 0 end",
        "",
    ),
    "nobody takes over": (
        "policies/exclusive.lua",
        "  redis.call('SREM', base .. 'live', name)\n  exclusive_promote(base, queue.now)",
        "  redis.call('SREM', base .. 'live', name)",
    ),
    "who has left is live": (
        "policies/exclusive.lua",
        "  redis.call('SREM', base .. 'live', name)\n  exclusive_promote(base, queue.now)",
        "  exclusive_promote(base, queue.now)",
    ),
    "the last one takes over first": (
        "policies/exclusive.lua",
        "redis.call('ZPOPMIN', base .. 'standbys')",
        "redis.call('ZPOPMAX', base .. 'standbys')",
    ),
    "priorities do not count": (
        "policies/exclusive.lua",
        "turn - priority * 68719476736",
        "turn",
    ),
    "a higher limit lets nobody begin": (
        "policies/exclusive.lua",
        "  exclusive_count(base)\n  exclusive_promote(base, queue.now)\nend",
        "  exclusive_count(base)\nend",
    ),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(fault: str, client: redis.Redis) -> None:
    lua = sound().changed(FAULTS[fault])
    assert any(Course(client, lua, seed).play() for seed in range(TO_FIND))
