"""Jobs with limits that come, run, fail, wait and go at random, and limits that change: what must
hold is recounted after each step; and faults of that, planted, are found."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from rqueue.model.job import parse_value
from rqueue.model.job_limit import JobLimit
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from rqueue.protocol.settling import retried
from tests.property.course import Course
from tests.property.sources import START_MS, sound
from tests.support import invariants
from tests.support.profiles import examples

KIND = Kind.of(["limits"])
KEYS = QueueKeys("limits", "property")
SEEDS, STEPS = examples(2, 40), examples(60, 80)
TO_FIND = 10
"""Courses in which each planted fault is found."""
PACE = JobLimit("pace", 2, "", 1000, 2)
"""A rate that is never set anew: the search has a bucket of its own for it."""
LIMITS = (
    JobLimit("crm", 1, "a"),
    JobLimit("crm", 1, "b"),
    JobLimit("crm", 2, "c"),
    JobLimit("all", 3),
    JobLimit("wide", 5),
    JobLimit("api", 2, "a", 1000, 1),
    JobLimit("api", 5, "b", 1000, 3, 2),
    PACE,
)


class LimitCourse(Course):
    """One course of random steps, with limits that change."""

    KEYS = KEYS
    KIND = KIND

    def __init__(self, client: redis.Redis, lua: Scripts, seed: int) -> None:
        self.paid: set[tuple[str, int]] = set()
        self.tokens, self.filled_ms = float(PACE.burst), START_MS
        super().__init__(client, lua, self.KIND, seed)

    def begin(self) -> None:
        self.run(commands.set_limit(KEYS, "other", "1"))

    # -- steps -------------------------------------------------------------------------------------

    def put(self) -> None:
        puts = []
        for _ in range(self.random.choice([1, 1, 2, 5])):
            self.jobs += 1
            some = self.random.sample(LIMITS, self.random.choice([0, 1, 1, 2, 3]))
            delay = self.random.choice([0, 0, 0, 500])
            limits = tuple(self.declared(limit).text for limit in some)
            level = self.random.choice([4, 4, 9])
            put = Put(f"j{self.jobs}", b'["t"]', level, delay_ms=delay, limits=limits)
            puts.append(put)
        self.run(commands.enqueue(KEYS, puts))

    def declared(self, limit: JobLimit) -> JobLimit:
        """The limit, now and then with another number, as after a deploy."""
        if limit is PACE or self.random.random() < 0.6:
            return limit
        return limit._replace(most=self.random.choice([1, 2, 4]))

    def pull(self) -> None:
        name = self.one()
        window = Window(self.random.choice([0, 1, 3, 8]))
        self.run(commands.pull(KEYS, name, self.terms[name], window))

    def limit(self) -> None:
        if self.random.random() < 0.5:
            name = self.random.choice(["crm=*", "crm=a", "all", "wide"])
            self.run(commands.set_limit(KEYS, name, self.random.choice(["", "0", "1", "2", "4"])))
        else:
            name = self.random.choice(["@api=*", "@api=a"])
            allows = self.random.choice(["", "", "0/1000+1", "1/1000+2", "9/1000+3"])
            self.run(commands.set_limit(KEYS, name, allows))

    def purge(self) -> None:
        if self.random.random() < 0.2:
            self.run(commands.purge(KEYS, 500))

    def wrong(self) -> list[str]:
        """Whether a job was taken that the bucket had no token for: each attempt takes one."""
        look = self.look()
        ids = [id for held in look.held.values() for id in held]
        heads = {id: parse_value(look.jobs[id])[0] for id in ids}
        new = {(id, head.attempts) for id, head in heads.items() if PACE.text in head.limits}
        filled = (look.now - self.filled_ms) * PACE.most / PACE.per_ms
        self.tokens = min(PACE.burst, self.tokens + filled) - len(new - self.paid)
        self.filled_ms, self.paid = look.now, self.paid | new
        return [f"{self.tokens} tokens are left"] if self.tokens < -1e-6 else []

    # -- what must hold ----------------------------------------------------------------------------

    def play(self) -> list[str]:
        steps = [self.lapse, self.leave, self.limit, self.cancel, self.reorder, self.purge]
        often = [self.put, self.put, self.pull, self.pull, self.settle, self.settle, self.time]
        return self.played(steps + often, STEPS)

    def drained(self) -> list[str]:
        """None is left behind for want of a permit."""
        for name in ("crm=*", "crm=a", "all", "wide", "@api=*", "@api=a"):
            self.run(commands.set_limit(KEYS, name, ""))
        return super().drained()


def test_permits_are_those_of_the_jobs_that_have_them(client: redis.Redis) -> None:
    for seed in range(SEEDS):
        assert LimitCourse(client, sound(), seed).play() == [], seed


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
        "policies/limits/shelf.lua",
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
        "if #some > 0 then",
        "if false then",
    ),
    "a limit that is set does not count": (
        "policies/limits.lua",
        "tonumber(LIMITS.most[limit] or LIMITS.said[limit] or said)",
        "tonumber(LIMITS.said[limit] or said)",
    ),
    "who waits for nothing is known as one that does": (
        "policies/limits.lua",
        "  redis.call('ZREM', base .. 'blocked', limit)\n",
        "",
    ),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(fault: str, client: redis.Redis) -> None:
    lua = sound().changed(FAULTS[fault])
    assert any(LimitCourse(client, lua, seed).play() for seed in range(TO_FIND))


def played(client: redis.Redis, lua: Scripts) -> list[str]:
    """What is wrong after known steps with a rate of two a second, two at once."""
    course = LimitCourse(client, lua, 0)
    one = ("c1", course.terms["c1"])
    wrong: list[str] = []

    def pulls(*expected: str, later: int = 0) -> None:
        client.hincrby(KEYS.meta, "clock", later)
        before = course.held("c1")
        course.run(commands.pull(KEYS, *one, Window(9)))
        new = [id for id in course.held("c1") if id not in before]
        wrong.extend([*invariants.of_state(course.look()), *course.wrong()])
        if new != [*expected]:
            wrong.append(f"{new} came, not {expected}")

    def settles(**fates: Any) -> None:
        course.run(commands.settle(KEYS, *one, None, **fates))
        wrong.extend(invariants.of_state(course.look()))

    puts = [Put(f"r{number}", b'["t"]', limits=(PACE.text,)) for number in range(8)]
    course.run(commands.enqueue(KEYS, puts))
    pulls("r0", "r1")
    pulls(later=499)
    pulls("r2", later=1)
    settles(ack=["r0"], release=["r1"])
    pulls("r1")
    settles(retry=[retried("r1", 0, {}, "", True)])
    pulls()
    pulls("r1", later=500)
    settles(ack=["r1", "r2"])
    pulls("r3", "r4", later=60_000)
    settles(ack=["r3", "r4"])
    pulls("r5", later=500)
    return wrong


RATE_FAULTS = {
    "a token is paid by nobody": (
        "include/limit/tokens.lua",
        "+ rule.cost * rule.every",
        "",
    ),
    "tokens that are set aside are there for others, too": (
        "include/limit/tokens.lua",
        "rule.burst - reserved - rule.cost",
        "rule.burst - rule.cost",
    ),
    "a retry at once has paid": (
        "policies/limits/shelf.lua",
        "sign == '!' and tonumber(attempt) ~= (job.attempts or 0)",
        "false",
    ),
    "what was released pays again": (
        "policies/limits/shelf.lua",
        "tonumber(attempt) ~= (job.attempts or 0)",
        "true",
    ),
    "what is taken sets no timer": (
        "policies/limits/taken.lua",
        "if redis.call('ZSCORE', base .. 'blocked', limit) then limits_arm(base, queue, limit) end",
        "",
    ),
    "a bucket holds more than its burst": (
        "include/limit/tokens.lua",
        "math.max(0, TOKENS.full[rate] - (now - EPOCH))",
        "TOKENS.full[rate] - (now - EPOCH)",
    ),
    "tokens that are due open nothing": (
        "policies/limits/upkeep.lua",
        "limits[#limits + 1] = rate",
        "",
    ),
}


def test_known_steps_with_a_rate(client: redis.Redis) -> None:
    assert played(client, sound()) == []


@pytest.mark.parametrize("fault", RATE_FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_in_rates_is_found(fault: str, client: redis.Redis) -> None:
    assert played(client, sound().changed(RATE_FAULTS[fault]))
