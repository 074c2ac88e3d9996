"""A search of its own: consumers refuse jobs, in any order with all else. There is no model beside
it: what must always hold says where jobs may be, who may have them, and who is notified."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rqueue.client._sync.queue import Queue
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.protocol.policies.refusals import ELSEWHERE
from rqueue.protocol.scripts import Scripts
from rqueue.testing import move_time
from tests.property.choices import CAUSE, ERROR, delays, priorities, ranks, some, windows
from tests.support import invariants, refusal_invariants, transitions
from tests.support.run_script import run
from tests.support.snapshot import Snapshot, take_snapshot

CONSUMERS_MAX = 5
OUTCOMES = ("refuse", "refuse", "refuse", "ack", "release", "later", "tail", "reject")


class RefusingMachine(RuleBasedStateMachine):
    """One queue, up to five consumers."""

    client: ClassVar[redis.Redis]
    lua: ClassVar[Scripts]

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(f"refuse-{uuid.uuid4().hex[:12]}", redis=self.client)
        self.keys = self.queue.keys
        self.kind = PLAIN
        self.before = take_snapshot(self.client, self.keys)
        self.names = 0
        self.accepted: list[str] = []
        self.terms: dict[str, str] = {}
        self.windows: dict[str, Window] = {}
        self.refused: set[tuple[str, str]] = set()
        """(job, consumer that refused it)."""

    def teardown(self) -> None:
        if found := list(self.client.scan_iter(self.keys.base + "*", count=10_000)):
            self.client.delete(*found)

    def run(self, call: ScriptCall[Any]) -> Any:
        kind = self.kind.having(call.needs)
        script = self.lua.script(call.script, kind)
        return call.read(run(self.client, script, call.keys, call.args_for(kind.policies)))

    def name(self, pick: int) -> str:
        names = sorted(self.terms)
        return names[pick % len(names)]

    @initialize(kept=st.booleans(), consumers=st.lists(windows, min_size=1, max_size=3))
    def begin(self, kept: bool, consumers: list[tuple[int, int]]) -> None:
        """A queue takes the policy on with the first job that is refused, or has it before."""
        kind = Kind.of(["refusals"]) if kept else PLAIN
        self.run(commands.configure(self.keys, {"v": kind.stamp}))
        self.kind = kind
        for window in consumers:
            self.join(window, 0)
        self.before = take_snapshot(self.client, self.keys)

    @rule(jobs=st.lists(st.tuples(priorities, delays), min_size=1, max_size=3))
    def put(self, jobs: list[tuple[int, int]]) -> None:
        ids = [f"j{len(self.accepted) + number}" for number in range(len(jobs))]
        puts = [Put(id, b'["t"]', *job) for id, job in zip(ids, jobs, strict=True)]
        self.run(commands.enqueue(self.keys, puts))
        self.accepted += ids

    @precondition(lambda self: len(self.terms) < CONSUMERS_MAX)
    @rule(window=windows, rank=ranks)
    def join(self, window: tuple[int, int], rank: int) -> None:
        self.names += 1
        name = f"c{self.names}"
        self.windows[name] = Window(*window)
        call = commands.register(
            self.keys, name, window=Window(*window), priority=rank, lease_ms=60_000, slots=1
        )
        self.terms[name] = self.run(call).term

    @precondition(lambda self: self.terms)
    @rule(pick=some, window=st.none() | windows)
    def pull(self, pick: int, window: tuple[int, int] | None) -> None:
        name = self.name(pick)
        if window:
            self.windows[name] = Window(*window)
        self.pull_by(name)

    def pull_by(self, name: str) -> None:
        """It gets what it may take, unless another one that may is ahead."""
        self.run(commands.pull(self.keys, name, self.terms[name], self.windows[name]))
        after = take_snapshot(self.client, self.keys)
        window = self.windows[name]
        free = window.jobs - len(after.held.get(name, ()))
        if free <= 0 or window.bytes or after.meta.get("paused") == "1":
            return
        for id in invariants.waiting(after):
            terms = refusal_invariants.refusers(after, id)
            waiting = [other for other in after.consumers if self.is_ahead(after, other, name)]
            able = [
                one for one in (name, *waiting) if refusal_invariants.may_take(after, one, terms)
            ]
            assert able != [name], f"{name} pulled, and {id} is left that nobody else is ahead of"

    @staticmethod
    def is_ahead(look: Snapshot, other: str, name: str) -> bool:
        """Whether another consumer has a higher priority, and credit."""
        rows = look.consumers
        credit = int(rows[other]["jobs"]) > len(look.held.get(other, ()))
        higher = int(rows[other]["priority"]) > int(rows[name]["priority"])
        return higher and credit and rows[other]["state"] in ("interested", "notified")

    @precondition(lambda self: self.before.scores("notified"))
    @rule(pick=some)
    def obey(self, pick: int) -> None:
        """One that was notified pulls."""
        names = sorted(self.before.scores("notified"))
        self.pull_by(names[pick % len(names)])

    @precondition(lambda self: self.before.held)
    @rule(
        pick=some,
        outcomes=st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=3),
        pulls=st.booleans(),
    )
    def settle(self, pick: int, outcomes: list[str], pulls: bool) -> None:
        holders = sorted(self.before.held)
        name = holders[pick % len(holders)]
        said = list(zip(self.before.held[name], outcomes, strict=False))
        retry = []
        freed = sum(len(self.before.jobs[id]) for id, _ in said)
        for id, outcome in said:
            if outcome == "refuse":
                self.refused.add((id, name))
                retry.append(Retried(id, 0, ELSEWHERE, False, b""))
            elif outcome in ("later", "tail"):
                later = outcome == "later"
                where = ("head", 800) if later else ("tail", 0)
                retry.append(Retried(id, where[1], where[0], False, ERROR))
        self.run(
            commands.settle(
                self.keys,
                name,
                self.terms[name],
                self.windows[name] if pulls else None,
                ack=[id for id, outcome in said if outcome == "ack"],
                retry=retry,
                reject=[(id, CAUSE) for id, outcome in said if outcome == "reject"],
                release=[id for id, outcome in said if outcome == "release"],
                freed=freed,
            )
        )

    @precondition(lambda self: self.terms)
    @rule(pick=some, window=windows)
    def interest(self, pick: int, window: tuple[int, int]) -> None:
        name = self.name(pick)
        self.windows[name] = Window(*window)
        self.run(commands.interest(self.keys, name, self.terms[name], Window(*window)))

    @precondition(lambda self: len(self.terms) > 1)
    @rule(pick=some, dies=st.booleans())
    def leave(self, pick: int, dies: bool) -> None:
        name = self.name(pick)
        term = self.terms.pop(name)
        if dies:
            self.run(commands.reclaim(self.keys, name, CAUSE, []))
        else:
            self.run(commands.unregister(self.keys, name, term))

    @precondition(lambda self: self.before.jobs)
    @rule(pick=some, held=st.booleans())
    def cancel(self, pick: int, held: bool) -> None:
        self.run(commands.cancel(self.keys, self.live(pick), held=held))

    @precondition(lambda self: self.before.jobs)
    @rule(pick=some, to=st.sampled_from([9, 4, "front"]))
    def reorder(self, pick: int, to: Any) -> None:
        self.run(commands.reorder(self.keys, to, [(self.live(pick), b"", b"")]))

    @precondition(lambda self: self.before.jobs)
    @rule(pick=some)
    def requeue_or_promote(self, pick: int) -> None:
        id = self.live(pick)
        self.run(commands.requeue(self.keys, [id]))
        self.run(commands.promote(self.keys, [id]))

    @rule(ms=st.sampled_from([1, 900, 4000, 7000]), renews=st.booleans())
    def pass_time(self, ms: int, renews: bool) -> None:
        move_time(self.queue, ms)
        if renews:
            self.run(commands.renew(self.keys, 60_000, list(self.terms)))
        self.before = take_snapshot(self.client, self.keys)

    @rule()
    def pause_and_resume(self) -> None:
        paused = self.before.meta.get("paused") == "1"
        self.run(commands.resume(self.keys) if paused else commands.pause(self.keys))

    @precondition(lambda self: any(self.before.wakes.values()))
    @rule(pick=some)
    def hear(self, pick: int) -> None:
        names = sorted(name for name, unread in self.before.wakes.items() if unread)
        self.client.lpop(self.keys.wake(names[pick % len(names)]))

    def live(self, pick: int) -> str:
        ids = sorted(self.before.jobs)
        return ids[pick % len(ids)]

    @invariant()
    def holds(self) -> None:
        before, after = self.before, take_snapshot(self.client, self.keys)
        wrong = [
            *invariants.of_state(after),
            *transitions.credit_kept(before, after),
            *transitions.oldest_taken(before, after),
        ]
        again = transitions.newly_held(before, after)
        wrong += [
            f"{name} got {id} again, which it refused"
            for name, ids in again.items()
            for id in ids
            if (id, name) in self.refused
        ]
        assert not wrong, "\n  ".join(["after this step:", *wrong])
        self.before = after
        self.kind = Kind.parse(after.meta.get("v", PLAIN.stamp))
        for name in set(self.terms) - set(after.consumers):
            del self.terms[name]
