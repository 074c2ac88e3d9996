"""Random steps of jobs that come, run, fail, wait and go, for searches in queues of one kind."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import redis

from rqueue.protocol import commands
from rqueue.protocol.commands import ScriptCall, Window
from rqueue.protocol.commands.consumers import Ran
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from rqueue.protocol.settling import retried
from tests.property.sources import START_MS
from tests.support import invariants
from tests.support.run_script import run
from tests.support.snapshot import Snapshot, take_snapshot

LEASE_MS = 30_000
CONSUMERS = ("c1", "c2", "c3")

Step = Callable[[], list[str] | None]
"""A step; it answers what is wrong after it, if anything."""


class Course:
    """One course of random steps in the queue of `KEYS`."""

    KEYS: ClassVar[QueueKeys]

    def __init__(self, client: redis.Redis, lua: Scripts, kind: Kind, seed: int) -> None:
        self.client = client
        self.lua = lua
        self.kind = kind
        self.random = random.Random(seed)
        self.terms: dict[str, str] = {}
        self.jobs = 0
        client.delete(*(client.keys(self.KEYS.base + "*") or ["none"]))
        self.begin()
        for name in CONSUMERS:
            self.join(name)

    def begin(self) -> None:
        """Give the queue its kind."""
        raise NotImplementedError

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, self.kind)
        return call.read(run(self.client, script, list(call.keys), list(call.args)))

    def join(self, name: str) -> None:
        window = Window(self.random.choice([1, 3, 8]))
        call = commands.register(self.KEYS, name, window=window, lease_ms=LEASE_MS)
        self.terms[name] = self.run(call).term

    def one(self) -> str:
        return self.random.choice(CONSUMERS)

    def held(self, name: str) -> list[str]:
        found: Any = self.client.lrange(self.KEYS.held(name), 0, -1)
        return [id_.decode() for id_ in found]

    def freed(self, ids: list[str]) -> int:
        """Bytes of these jobs, as a consumer that settles them says."""
        return sum(int(self.client.hstrlen(self.KEYS.jobs, id_)) for id_ in ids)

    def look(self) -> Snapshot:
        """As the scripts see it, whose clock moves as the course says."""
        return replace(take_snapshot(self.client, self.KEYS), read_ms=START_MS)

    # -- steps -------------------------------------------------------------------------------------

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
        window, term = self.random.choice([None, Window(3)]), self.terms[name]
        freed = self.freed(
            [one if isinstance(one, str) else one[0] for of in fates.values() for one in of]
        )
        self.run(commands.settle(self.KEYS, name, term, window, freed=freed, **fates))

    def lapse(self) -> None:
        """The lease of one ends: its jobs come back, and wait a while where they ran."""
        name = self.one()
        if self.held(name) and self.random.random() < 0.5:
            self.run(commands.note_running(self.KEYS, name, [Ran(self.held(name)[0], 1, 1)]))
        others = [other for other in CONSUMERS if other != name]
        self.run(commands.renew(self.KEYS, 1, [name]))
        self.client.hincrby(self.KEYS.meta, "clock", 2)
        self.run(commands.renew(self.KEYS, LEASE_MS, others))
        self.join(name)

    def leave(self) -> list[str] | None:
        name = self.one()
        self.run(commands.unregister(self.KEYS, name, self.terms[name]))
        self.join(name)
        return None

    def time(self) -> None:
        self.client.hincrby(self.KEYS.meta, "clock", 300)

    def cancel(self) -> None:
        if self.jobs:
            self.run(commands.cancel(self.KEYS, f"j{self.random.randint(1, self.jobs)}"))

    def reorder(self) -> None:
        if self.jobs:
            job = (f"j{self.random.randint(1, self.jobs)}", b"", b"")
            self.run(commands.reorder(self.KEYS, self.random.choice([4, 9, "front"]), [job]))

    # -- what must hold ----------------------------------------------------------------------------

    def played(self, steps: list[Step], count: int) -> list[str]:
        """What is wrong after so many of these steps, and when all jobs have ended behind them."""
        for _ in range(count):
            step = self.random.choice(steps)
            if found := [*(step() or []), *invariants.of_state(self.look()), *self.wrong()]:
                return [f"after {step.__name__}: {one}" for one in found]
        return self.drained()

    def wrong(self) -> list[str]:
        """What else must hold after each step, and does not."""
        return []

    def drained(self) -> list[str]:
        """Every job ends where they are all done; what is wrong then."""
        for _ in range(4 * self.jobs + 20):
            if self.client.hlen(self.KEYS.jobs) == self.client.zcard(self.KEYS.dead):
                break
            self.client.hincrby(self.KEYS.meta, "clock", 700)
            for name in CONSUMERS:
                had = len(self.held(name))
                self.run(commands.pull(self.KEYS, name, self.terms[name], Window(8)))
                if found := self.took(self.held(name)[had:]):
                    return found
                done = self.held(name)
                term, freed = self.terms[name], self.freed(done)
                self.run(commands.settle(self.KEYS, name, term, None, ack=done, freed=freed))
        look = self.look()
        left = set(look.jobs) - set(look.scores("dead"))
        return [f"{sorted(left)} are left"] if left else invariants.of_state(look)

    def took(self, ids: list[str]) -> list[str]:
        """What is wrong with these jobs in this order, which one pull took."""
        return []
