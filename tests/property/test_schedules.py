"""Schedules at random, in virtual time: consumers that look, work, fail and die, beside a model of
what becomes of each tick; and faults of that, planted, are found.

Each step is one script: between any two of them everybody may die, since nothing but what is in
Redis goes on to the next one.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import redis

from rqueue.model.schedule import AHEAD_MS, Timing
from rqueue.model.tick import tick_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scheduling import refill
from rqueue.protocol.scripts import Scripts
from tests.property.sources import START_MS, sound
from tests.support import invariants
from tests.support.run_script import run
from tests.support.schedules import records, schedule
from tests.support.snapshot import take_snapshot

KINDS = [
    Kind.of(["schedules"]),
    Kind.of(["schedules", "ttl", "groups"]),
    Kind.of(["schedules", "unique"]),
]
KEYS = QueueKeys("periodic", "property")
SEEDS, STEPS = 8, 50
LEASE_MS = 10**12
MINUTE = 60_000
RENEWED_MS = 10 * MINUTE
"""The lease that is renewed: for so long a pool has not gone away."""
ERROR = b'{"kind":"exception","type":"ValueError"}'

MISSED = ["last", "skip", "all"]
OVERLAP = ["allow", "skip", "queue"]


class Model:
    """What one schedule has decided of its ticks: one every minute."""

    def __init__(self, timing: Timing, now: int, key: str = "") -> None:
        self.timing = timing
        self.key = key
        self.conflicts = 0
        self.next = timing.after(now, 1)[0]
        self.known = timing.ahead(now, now + AHEAD_MS)[-1]
        self.last_id = ""
        self.owed = 0
        self.fired: list[int] = []

    def due(self, now: int, present: int) -> list[int]:
        """The ticks that become jobs, or would if none overlapped; the others are left out. Those
        from `present` on are not missed."""
        timing = self.timing
        ticks = list(range(self.next, now + 1, MINUTE))
        if timing.cron:
            ticks = [tick for tick in ticks if tick <= self.known]
        if not ticks:
            return []
        oldest = now - timing.window_ms if timing.missed == "all" else present
        chosen = [tick for tick in ticks if tick >= oldest][:50]
        if timing.missed == "all" or chosen:
            self.next = (chosen[-1] if chosen else ticks[-1]) + MINUTE
            return chosen
        if timing.cron and self.known <= now:
            return []
        self.next = ticks[-1] + MINUTE
        late = timing.missed == "skip" and now - ticks[-1] > timing.grace_ms(now)
        return [] if late else ticks[-1:]


class Course:
    """One course of random steps."""

    def __init__(self, client: redis.Redis, lua: Scripts, seed: int) -> None:
        self.client, self.lua = client, lua
        self.random = random.Random(seed)
        self.kind = self.random.choice(KINDS)
        self.terms: dict[str, str] = {}
        self.models: dict[str, Model] = {}
        self.ever: set[str] = set()
        self.owners: dict[str, str] = {}
        self.fresh: set[str] = set()
        self.number = 0
        self.ahead = 0
        self.paused = False
        self.looked = self.lasting = 0
        client.delete(*(client.keys(KEYS.base + "*") or ["none"]))
        self.schedule()
        self.join()

    @property
    def now(self) -> int:
        return START_MS + self.ahead

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, self.kind)
        return call.read(run(self.client, script, list(call.keys), list(call.args)))

    def lives(self, id: str) -> bool:
        return bool(self.client.hexists(KEYS.jobs, id)) and (
            not self.client.hget(KEYS.jobs, id).startswith(b"!")  # type: ignore[union-attr]
            and self.client.zscore(KEYS.dead, id) is None
        )

    def one(self) -> str:
        return self.random.choice(sorted(self.terms)) if self.terms else ""

    # -- what a look does --------------------------------------------------------------------------

    def look(self) -> None:
        """What any look does to the schedules, before it."""
        if self.paused:
            return
        self.fresh = set()
        for name, model in self.models.items():
            if model.owed and not self.lives(model.last_id):
                self.fire(name, model, model.owed)
                model.owed = 0
        present = self.looked if self.now - self.looked <= self.lasting else self.now
        ticks = []
        for name, model in sorted(self.models.items(), key=lambda one: (one[1].next, one[0])):
            ticks += [(tick, name, model) for tick in model.due(self.now, present)]
        for tick, name, model in sorted(ticks, key=lambda one: one[0]):
            alive = model.last_id in self.fresh or self.lives(model.last_id)
            if alive and model.timing.overlap == "skip":
                continue
            if alive and model.timing.overlap == "queue":
                model.owed = tick
                continue
            self.fire(name, model, tick)

    def fire(self, name: str, model: Model, tick: int) -> bool:
        """Whether the tick becomes a job: no other one has its unique key."""
        id_ = tick_id(name, tick)
        other = self.owners.get(model.key, "")
        if model.key and (other in self.fresh or self.lives(other)):
            model.conflicts += 1
            return False
        self.owners[model.key] = id_
        self.fresh.add(id_)
        assert id_ not in self.ever, f"the model fires {id_} twice"
        self.ever.add(id_)
        model.last_id = id_
        model.fired.append(tick)
        return True

    def ripen(self) -> None:
        """Queues that compare jobs look in a step that compares some, others do not: so that it
        does not matter which, all has been looked at before."""
        if self.paused or not {"groups", "unique"} & set(self.kind.policies):
            return
        self.renew()
        while self.client.zcount(KEYS.ticks, "-inf", self.now):
            self.renew()

    # -- steps -------------------------------------------------------------------------------------

    def schedule(self) -> None:
        if len(self.models) == 3:
            return
        self.number += 1
        name = f"s{self.number}"
        when: dict[str, Any] = self.random.choice([{"every": 60}, {"cron": "* * * * *"}])
        timing = Timing.of(
            **when,
            missed=self.random.choice(MISSED),  # type: ignore[arg-type]
            overlap=self.random.choice(OVERLAP),  # type: ignore[arg-type]
            window=self.random.choice(["5m", "1h"]),
            jitter=self.random.choice([0, 0, 40]),
        )
        terms = self.random.choice(["4,,0,", "9,,0,"])
        if "groups" in self.kind.policies:
            terms = self.random.choice([terms, "4,,0|gg,"])
        key = ""
        if "unique" in self.kind.policies and (key := self.random.choice(["", "a", "a", "b"])):
            terms = f"{terms[:-1]}|ue{self.random.choice('xf')}:{key},"
        said = schedule(self.now, timing, terms=terms)
        assert self.run(commands.set_schedule(KEYS, name, "", said)) == "made"
        if not self.looked and (
            last := self.client.zrange(KEYS.consumers, -1, -1, withscores=True)
        ):
            self.looked, self.lasting = self.now, int(last[0][1]) - self.now
        self.models[name] = Model(timing, self.now, key)

    def remove(self) -> None:
        if len(self.models) > 1:
            name = self.random.choice(sorted(self.models))
            assert self.run(commands.remove_schedule(KEYS, name))
            del self.models[name]

    def pause(self) -> None:
        self.paused = not self.paused
        self.run(commands.pause(KEYS) if self.paused else commands.resume(KEYS))
        self.looked = 0

    def join(self) -> None:
        self.number += 1
        call = commands.register(KEYS, f"c{self.number}", window=Window(1), lease_ms=LEASE_MS)
        self.terms[f"c{self.number}"] = self.run(call).term

    def die(self) -> None:
        if name := self.one():
            del self.terms[name]
            self.ripen()
            self.run(commands.reclaim(KEYS, name, ERROR, []))

    def put(self) -> None:
        self.number += 1
        self.ripen()
        self.run(commands.enqueue(KEYS, [Put(f"j{self.number}", b'["t"]')]))

    def pull(self) -> None:
        if name := self.one():
            window = Window(self.random.choice([1, 3, 500]))
            self.ripen()
            if self.client.llen(KEYS.held(name)) < window.jobs:
                self.look()
            self.run(commands.pull(KEYS, name, self.terms[name], window))

    def settle(self) -> None:
        if not (name := self.one()):
            return
        self.ripen()
        found: Any = self.client.lrange(KEYS.held(name), 0, -1)
        held = [id_.decode() for id_ in found]
        how = self.random.choice(["ack", "ack", "release", "retry", "reject"])
        done: dict[str, Any] = {how: held}
        if how == "retry":
            done = {"retry": [Retried(id_, 90_000, "head", True, ERROR) for id_ in held]}
        if how == "reject":
            done = {"reject": [(id_, ERROR) for id_ in held]}
        call = commands.settle(KEYS, name, self.terms[name], None, **done)
        self.run(call)

    def settle_and_pull(self) -> None:
        if not (name := self.one()):
            return
        self.ripen()
        found: Any = self.client.lrange(KEYS.held(name), 0, -1)
        held = [id_.decode() for id_ in found][:1]
        self.run(commands.settle(KEYS, name, self.terms[name], None, ack=held[:0]))
        if len(found) - len(held) < 2:
            lasting = self.lives
            self.lives = lambda id_: id_ not in held and lasting(id_)  # type: ignore[method-assign]
            self.look()
            self.lives = lasting  # type: ignore[method-assign]
        rows = {"batch": b"?", "rows": len(held)} if held else {}
        call = commands.settle(KEYS, name, self.terms[name], Window(2), ack=held, **rows)  # type: ignore[arg-type]
        self.run(call)

    def renew(self) -> None:
        self.look()
        answer = self.run(commands.renew(KEYS, RENEWED_MS, []))
        if not self.paused and not self.client.zcount(KEYS.ticks, "-inf", self.now):
            self.looked, self.lasting = self.now, RENEWED_MS
        if self.random.random() < 0.7:
            refill(self.run, KEYS, answer.lacking)
        self.learn()

    def learn(self) -> None:
        """The ticks that are known are the script's; the model takes their end from there."""
        for name, record in records(take_snapshot(self.client, KEYS)).items():
            if record["nexts"]:
                self.models[name].known = record["nexts"][-1]
                if self.models[name].timing.cron and record["nexts"][0] > self.models[name].next:
                    self.models[name].next = record["nexts"][0]

    def cancel(self) -> None:
        ids = sorted(id_.decode() for id_ in self.client.hkeys(KEYS.jobs))  # type: ignore[union-attr]
        if ids:
            self.ripen()
            self.run(commands.cancel(KEYS, self.random.choice(ids), held=True))

    def pass_time(self) -> None:
        ms = self.random.choice([1_000, 20_000, MINUTE, MINUTE, 5 * MINUTE, 40 * MINUTE])
        self.ahead += ms
        self.client.hincrby(KEYS.meta, "clock", ms)

    # -- after each --------------------------------------------------------------------------------

    def holds(self) -> None:
        after = take_snapshot(self.client, KEYS)
        wrong = invariants.of_state(after)
        assert not wrong, wrong
        made = {id_ for id_ in (*after.jobs, *after.records) if "@" in id_}
        assert made == self.ever, (sorted(made - self.ever), sorted(self.ever - made))
        for name, record in records(after).items():
            model = self.models[name]
            assert record["fired"] == len(model.fired)
            assert record["conflicts"] == model.conflicts
            assert record.get("owed", 0) == model.owed
            if model.fired:
                assert (record["last"], record["last_id"]) == (model.fired[-1], model.last_id)
            for id_ in after.jobs:
                if model.timing.overlap != "allow" and id_.startswith(f"{name}@"):
                    assert id_ == model.last_id or not self.lives(id_), "two live at once"


STEP_NAMES = [
    *("pull", "pull", "pull", "settle", "settle", "settle_and_pull", "settle_and_pull", "renew"),
    *("pass_time", "pass_time", "pass_time", "schedule", "remove", "pause", "pause", "join"),
    *("die", "put", "cancel"),
]


def walk(client: redis.Redis, lua: Scripts, seed: int, steps: int = STEPS) -> None:
    course = Course(client, lua, seed)
    course.run(commands.configure(KEYS, {"keep_ms": 31_536_000_000}))
    for _ in range(steps):
        getattr(course, course.random.choice(STEP_NAMES))()
        course.holds()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_ticks_at_random(seed: int, client: redis.Redis) -> None:
    """A-41, A-42, A-43."""
    walk(client, sound(), seed)


FIRE, RECORD, DUE = "policies/schedules/fire.lua", "include/tick/record.lua", "include/tick/due.lua"
ATTENDED = "include/tick/attended.lua"
FAULTS = [
    ("a tick stays due", 0, RECORD, "record.nexts[1]), name)", "record.nexts[1] - 60000), name)"),
    ("the first of the missed ones", 4, DUE,
     "passed, left_out = tick", "passed, left_out = passed or tick"),
    ("what a busy pool looks at late is missed", 6, ATTENDED, "if looked and", "if false and"),
    ("a pool that was away was there", 4, ATTENDED, "now - looked <= tonumber(lease)",
     "true"),
    ("a paused queue goes on", 5, "policies/schedules.lua",
     "redis.call('HDEL', base .. 'meta', 'looked')", ""),
    ("unknown ticks are not waited for", 4, DUE, "record.waits = true\n        return due", ""),
    ("a tick too old for the window", 13, DUE,
     "and now - record.window or present", "and 0 or present"),
    ("a dead letter is taken for alive", 6, "include/tick/put.lua",
     " and not redis.call('ZSCORE', base .. 'dead', id)", ""),
    ("what is owed is forgotten", 22, RECORD,
     "redis.call('HSET', base .. 'owed', name, '1')", "do end"),
    ("an earlier tick is owed", 28, FIRE,
     "record.owed = one.tick\n", "record.owed = record.owed or one.tick\n"),
    ("who waits learns of no tick", 3, "include/pull/pull.lua",
     "  --- @each timed(base, first)\n  if not first[2] then return -1 end",
     "  if not first[2] then return -1 end"),
    ("who comes watches for no tick", 1, "include/consumer/notify_next.lua",
     "  queue.quiet = false\n", ""),
    ("nobody hears of a new schedule", 39, "include/tick/watch.lua",
     "if queue.paused then return end", "do return end"),
    ("few ticks are no reason to compute more", 4, RECORD,
     "redis.call('SADD'", "redis.call('SREM'"),
    ("a paused queue fires", 16, "include/consumer/maintenance.lua",
     "  if not queue.paused then\n    --- @each fires", "  do\n    --- @each fires"),
    ("a tick becomes a job beside the one of its key", 10, "include/tick/put.lua",
     "if conflict or uniques.answered[1] then", "if false then"),
    ("the job of a tick has no key", 10, "include/tick/put.lua",
     "  --- @each owned(base, queue.now, uniques.index, false)\n", ""),
    ("a tick that met another job is not counted", 10, "include/tick/put.lua",
     "if not at_once then record.conflicts", "if at_once then record.conflicts"),
]  # fmt: skip
"""What is planted, and the seed of a course that shows it."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0].replace(" ", "_"))
def test_planted(fault: tuple[str, int, str, str, str], client: redis.Redis) -> None:
    _, seed, file, right, wrong = fault
    with pytest.raises((AssertionError, redis.ResponseError)):
        walk(client, sound().changed((file, right, wrong)), seed)
