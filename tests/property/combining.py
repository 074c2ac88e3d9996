"""Queues that have several policies at once: what producers, consumers and people do, at random.

There is no model beside it. After each step all that must always hold of any queue is looked at, a
refusal has changed nothing, and in the end a consumer that takes all jobs empties the queue.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import redis

from rqueue.client._sync.queue import Queue
from rqueue.errors import QueueDamaged, RQueueError, ScriptError, UnusableServer
from rqueue.model.job_limit import JobLimit
from rqueue.model.parents import Parents
from rqueue.model.selector import Selector, selector
from rqueue.model.sort_keys import sort_key_text
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.protocol.commands.consumers import Ran
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.commands.shards import of_version
from rqueue.protocol.policies import POLICIES, ExcludedPolicies, Kind
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.property.choices import CAUSE, ERROR
from tests.support import invariants
from tests.support.snapshot import Snapshot, take_snapshot

LEASE_MS = 60_000
CONSUMERS_MAX = 4
BODIES = (b'["t"]', b'["t",["xxxxxxxxxxxxxxxxxxxx"]]', b'["t",[],{},{"labels":{"x":1}}]')
OUTCOMES = ("ack", "ack", "release", "retry", "later", "tail", "reject")
MINE = (QueueDamaged, ScriptError, UnusableServer)
"""Errors that no step may end with: these say that something is wrong."""

Terms = Callable[[random.Random, int], Mapping[str, Any]]


def _nothing(_random: random.Random, _number: int) -> Mapping[str, Any]:
    return {}


class Arm(NamedTuple):
    """How a policy is put to use: the queue's options, what its jobs say of themselves, what a
    consumer selects, whether consumers refuse jobs, and whether the queue is a shard. inside: it
    comes with others, or its queues have no jobs."""

    options: Mapping[str, int | str] = {}
    terms: Terms = _nothing
    select: str = ""
    refuses: bool = False
    shard: bool = False
    inside: bool = False


def _named(word: str, names: str = "ab") -> Terms:
    return lambda random, _: {word: random.choice(["", *names])}


LIMITS = (JobLimit("two", 2).text, JobLimit("one", 1, key="a").text)

ARMS: dict[str, Arm] = {
    "levels": Arm(inside=True),
    "outbox": Arm(inside=True),
    "deleting": Arm(inside=True),
    "ttl": Arm({"ttl_max_ms": 9000}, lambda r, _: {"ttl_ms": r.choice([0, 900, 3000])}),
    "sticky": Arm({"sticky": 4}, _named("group")),
    "hold": Arm({}, lambda r, _: {"hold": True, "delay_ms": r.choice([0, 800])}),
    "last_value": Arm({}, _named("key")),
    "ring": Arm({"ring_jobs": 3}),
    "ring_bytes": Arm({"ring_bytes": 60}),
    "exclusive": Arm({"live_consumers": 1}),
    "shares": Arm({}, _named("share")),
    "limits": Arm({}, lambda r, _: {"limits": r.choice([(), LIMITS[:1], LIMITS])}),
    "groups": Arm({}, _named("group")),
    "selectors": Arm({}, select="x = 1"),
    "refusals": Arm(refuses=True),
    "sorted": Arm({}, lambda r, _: {"sort": r.choice(["", *map(sort_key_text, (1, 2))])}),
    "front": Arm({}, lambda r, _: {"front": r.random() < 0.3}),
    "flows": Arm(
        {},
        lambda r, n: (
            {"waits": Parents(1, ids=(f"j{n - 1}",)).text, "delay_ms": 0}
            if n and r.random() < 0.3
            else {}
        ),
    ),
    "schedules": Arm(),
    "alternate": Arm({"dead_to": "elsewhere"}),
    "discarding": Arm({"dead_letters": 0}),
    "lifetime": Arm({"delete_if": 1, "delete_after_ms": 3_600_000}),
    "bounded": Arm({"max_jobs": 6}),
    "max_bytes": Arm({"max_bytes": 90}),
    "unique": Arm({}, lambda r, _: {"unique": r.choice(["", "ex:a", "sx:a", "sr:a", "ef:b"])}),
    "alerts": Arm({"alert_depth": 3}),
    "shard": Arm(shard=True),
    "sharded": Arm(inside=True),
}
"""Each policy has one: one without is of no combination that is tried."""


def kinds(policies: int) -> list[Kind]:
    """All kinds with so many policies that are asked for by name, and what these bring along."""
    names = [name for name in POLICIES if name in ARMS and not ARMS[name].inside]
    found: dict[tuple[str, ...], Kind] = {}

    def add(chosen: tuple[str, ...], start: int) -> None:
        try:
            kind = Kind.of(chosen)
        except ExcludedPolicies:
            return
        if len(chosen) == policies:
            found[kind.policies] = kind
            return
        for at in range(start, len(names)):
            add((*chosen, names[at]), at + 1)

    add((), 0)
    return list(found.values())


class Combined:
    """One queue of a kind, and up to four consumers of it."""

    def __init__(self, client: redis.Redis, name: str, kind: Kind, seed: int) -> None:
        self.client = client
        self.queue = Queue(name, redis=client)
        self.keys = self.queue.keys
        self.kind = kind
        self.random = random.Random(f"{seed} {kind}")
        self.arms = [ARMS[policy] for policy in kind.policies]
        self.select = next((arm.select for arm in self.arms if arm.select), "")
        self.terms: dict[str, str] = {}
        self.jobs = 0
        self.joined = 0
        self.said: list[str] = []
        """The steps, for who reads a failure."""
        if "alternate" in kind.policies:
            self.queue.at("elsewhere").configure(max_deliveries=3)
        options: dict[str, int | str] = {"v": kind.stamp}
        execute(client, commands.configure(self.keys, options), queue=name)
        settings = {name: value for arm in self.arms for name, value in arm.options.items()}
        self.before = take_snapshot(client, self.keys)
        if settings:
            self.run(commands.configure(self.keys, settings))
        self.shard = any(arm.shard for arm in self.arms)
        if self.shard:
            self.run(commands.inform_shard(self.keys, "spread", 1))
        self.join()

    def teardown(self) -> None:
        for key in self.client.scan_iter(self.keys.base + "*", count=10_000):
            self.client.delete(key)

    # -- a step, and what is to hold then ----------------------------------------------------------

    def run(self, call: ScriptCall[Any]) -> Any:
        """Its answer; None where it is refused, and has changed nothing."""
        self.said.append(f"{call.script} {list(call.args)[:12]}")
        try:
            answer = execute(self.client, call, queue=self.queue.name)
        except MINE:
            raise
        except RQueueError as error:
            self.said[-1] += f" refused: {error}"
            self.look(unchanged=True)
            return None
        self.look()
        return answer

    def look(self, unchanged: bool = False) -> Snapshot:
        """Raise AssertionError where something does not hold."""
        after = take_snapshot(self.client, self.keys)
        wrong = invariants.of_state(after)
        if unchanged:
            wrong += invariants.unchanged(self.before, after)
        if wrong:
            steps = "\n  ".join(self.said[-25:])
            raise AssertionError(f"in {self.kind}: {wrong}\nafter these steps:\n  {steps}")
        self.before = after
        for name in self.terms.keys() - after.consumers.keys():
            del self.terms[name]
        return after

    # -- steps -------------------------------------------------------------------------------------

    def step(self) -> None:
        """One of them."""
        choose = [
            *[self.put] * 5, *[self.pull] * 5, *[self.settle] * 6, self.join, self.leave,
            self.cancel, self.reorder, self.interest, *[self.pass_time] * 2, self.people, self.hear,
        ]  # fmt: skip
        self.random.choice(choose)()

    def put(self) -> None:
        puts = []
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            terms: dict[str, Any] = {
                "priority": self.random.choice([4, 4, 4, 9, 0]),
                "delay_ms": self.random.choice([0, 0, 0, 0, 800]),
                "max_deliveries": self.random.choice([0, 0, 2]),
            }
            for arm in self.arms:
                terms |= arm.terms(self.random, self.jobs)
            puts.append(Put(f"j{self.jobs}", self.random.choice(BODIES), **terms))
            self.jobs += 1
        immediate = len(puts) == 1 and self.random.random() < 0.1
        call = commands.enqueue(self.keys, puts, immediate=immediate)
        self.run(of_version(call, 1) if self.shard else call)

    def name(self) -> str:
        return self.random.choice(sorted(self.terms)) if self.terms else ""

    def window(self) -> Window:
        return Window(self.random.choice([1, 1, 2, 3]), self.random.choice([0, 0, 0, 150]))

    def join(self) -> None:
        if len(self.terms) >= CONSUMERS_MAX:
            return
        self.joined += 1
        selects: Selector | None = None
        if self.select and self.random.random() < 0.6:
            selects = selector(self.select)
        call = commands.register(
            self.keys,
            f"c{self.joined}",
            window=self.window(),
            priority=self.random.choice([0, 0, 0, 1]),
            lease_ms=LEASE_MS,
            select=selects,
        )
        if answer := self.run(call):
            self.terms[f"c{self.joined}"] = answer.term

    def leave(self) -> None:
        if len(self.terms) < 2:
            return
        name = self.name()
        term = self.terms[name]
        if self.random.random() < 0.5:
            held = self.before.held.get(name, [])
            charged = [Ran(id_, 0, 0) for id_ in held[:1]]
            self.run(commands.reclaim(self.keys, name, CAUSE, charged))
        else:
            self.run(commands.unregister(self.keys, name, term))

    def pull(self) -> None:
        if name := self.name():
            notified = sorted(self.before.scores("notified").keys() & self.terms.keys())
            name = self.random.choice([name, *notified])
            self.run(commands.pull(self.keys, name, self.terms[name], self.window()))

    def interest(self) -> None:
        if name := self.name():
            self.run(commands.interest(self.keys, name, self.terms[name], self.window()))

    def settle(self) -> None:
        holders = sorted(self.before.held.keys() & self.terms.keys())
        if not holders:
            return
        name = self.random.choice(holders)
        held = self.before.held[name]
        ids = held[: self.random.choice([1, 1, 2, 3])]
        groups: dict[str, list[str]] = {}
        outcomes = [*OUTCOMES, "refuse"] if any(arm.refuses for arm in self.arms) else OUTCOMES
        for id_ in ids:
            groups.setdefault(self.random.choice(outcomes), []).append(id_)
        fates = {"retry": ("old", 0), "later": ("old", 800), "tail": ("tail", 0)}
        retry = [
            Retried(id_, fates[how][1], fates[how][0], True, ERROR)
            for how in fates
            for id_ in groups.get(how, ())
        ]
        retry += [Retried(id_, 0, "elsewhere", False, b"") for id_ in groups.get("refuse", ())]
        self.run(
            commands.settle(
                self.keys,
                name,
                self.terms[name],
                self.window() if self.random.random() < 0.5 else None,
                ack=groups.get("ack", []),
                retry=retry,
                reject=[(id_, CAUSE) for id_ in groups.get("reject", ())],
                release=groups.get("release", []),
                freed=sum(len(self.before.jobs[id_]) for id_ in ids),
            )
        )

    def some_job(self) -> str:
        return self.random.choice(sorted(self.before.jobs) or ["none"])

    def cancel(self) -> None:
        held = self.random.random() < 0.5
        self.run(commands.cancel(self.keys, self.some_job(), held=held))

    def reorder(self) -> None:
        to: Any = self.random.choice([9, 4, "front"])
        self.run(commands.reorder(self.keys, to, [(self.some_job(), b"", b"")]))

    def pass_time(self) -> None:
        move_time(self.queue, self.random.choice([1, 900, 4000]))
        if self.random.random() < 0.5:
            self.said.append("renew")
            execute(self.client, commands.renew(self.keys, LEASE_MS, list(self.terms)))
        self.before = take_snapshot(self.client, self.keys)
        self.look()

    def people(self) -> None:
        """What the command line does."""
        id_ = self.some_job()
        calls: list[ScriptCall[Any]] = [
            commands.requeue(self.keys, [id_]),
            commands.promote(self.keys, [id_]),
            commands.promote(self.keys),
            commands.expire(self.keys, [id_]),
            commands.reject(self.keys, [id_]),
            commands.purge(self.keys, 2, scheduled=True),
            commands.pause(self.keys),
        ]
        self.run(self.random.choice(calls))
        if self.before.meta.get("paused") == "1":
            self.run(commands.resume(self.keys))

    def hear(self) -> None:
        """A consumer reads a word of its list."""
        if names := sorted(name for name, unread in self.before.wakes.items() if unread):
            self.client.lpop(self.keys.wake(self.random.choice(names)))
            self.before = take_snapshot(self.client, self.keys)

    # -- the end -----------------------------------------------------------------------------------

    def empty(self) -> None:
        """All leave but one, that takes everything: nothing is left that waits."""
        for name, term in list(self.terms.items()):
            while (left := self.run(commands.unregister(self.keys, name, term))) and left[0]:
                ...
        self.terms.clear()
        counts = execute(self.client, commands.counts(self.keys), queue=self.queue.name)
        if not is_there(counts):
            return
        answer = self.run(
            commands.register(self.keys, "last", window=Window(100), lease_ms=10 * LEASE_MS)
        )
        for _ in range(60):
            move_time(self.queue, 4000)
            self.before = take_snapshot(self.client, self.keys)
            reply = self.run(commands.pull(self.keys, "last", answer.term, Window(100)))
            ids = list(self.before.held.get("last", ()))
            if not ids and not reply.jobs and not self.before.scheduled:
                break
            self.run(commands.settle(self.keys, "last", answer.term, None, ack=ids))
        counts = execute(self.client, commands.counts(self.keys), queue=self.queue.name)
        left = {"ready": counts.ready, "scheduled": counts.scheduled, "blocked": counts.blocked}
        assert not any(left.values()) and not counts.held, f"in {self.kind}: {left} are left"
