"""Steps of the search: jobs and consumers come."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from rqueue.model.sort_keys import sort_key_text
from rqueue.model.terms import NORMAL_TERMS
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.policies import PLAIN, Kind
from tests.property.choices import (
    CONSUMERS_MAX,
    KEEP_MS,
    KINDS,
    NO_GROUPS,
    delays,
    groups,
    limits,
    paddings,
    priorities,
    ranks,
    some,
    windows,
)
from tests.property.driver import Driver
from tests.property.entities import Consumer, Job
from tests.support import transitions
from tests.support.snapshot import take_snapshot


class Arriving(Driver):
    """Producers enqueue, consumers register."""

    @rule(
        jobs=st.lists(
            st.tuples(priorities, delays, paddings, limits, some), min_size=1, max_size=4
        ),
        immediate=st.booleans(),
        names=st.lists(groups, min_size=4, max_size=4),
    )
    def enqueue(
        self,
        jobs: list[tuple[int, int, int, int, int]],
        immediate: bool,
        names: Sequence[str] = NO_GROUPS,
    ) -> None:
        if self.everyday:
            jobs = [(4, 0, padding, 0, twice) for _, _, padding, _, twice in jobs[:1]]
        self.enqueue_all(jobs, immediate, names=names if self.named else NO_GROUPS)

    def body(self, padding: int, index: int) -> bytes:
        """The envelope of a job; index: its place in the call."""
        return f'["t",["{"x" * padding}"]]'.encode()

    def consumer(self, name: str, call: dict[str, Any]) -> tuple[dict[str, Any], type[Consumer]]:
        """How a consumer registers, and what the model makes of it."""
        return call, Consumer

    def enqueue_all(
        self,
        jobs: list[tuple[int, int, int, int, int]],
        immediate: bool,
        ttls: Sequence[int] = (),
        names: Sequence[str] = (),
        uniques: Sequence[str] = (),
    ) -> None:
        puts: list[Put] = []
        asked = zip_longest(jobs, ttls, names[: len(jobs)], uniques[: len(jobs)])
        for (priority, delay, padding, limit, twice), ttl, group, unique in asked:
            id = f"j{len(self.model.accepted) + len(puts)}"
            if twice == 0 and self.model.accepted and not puts:
                id = self.model.accepted[-(padding % 7) - 1 :][0]
            body = self.body(padding, len(puts))
            most = {"max_deliveries": max(0, limit), "max_crashes": max(0, -limit)}
            which: dict[str, str] = {"sort": sort_key_text(group) if self.sorted and group else ""}
            if self.keyed or not self.sorted:
                which["key" if self.keyed else "group"] = group or ""
            which["unique"] = unique or ""
            held = self.holding and twice % 2 == 1
            put = Put(id, body, priority, delay, ttl_ms=ttl or 0, hold=held, **most, **which)
            puts.append(put._replace(front=self.fronting and twice % 2 == 1))
        call = commands.enqueue(self.keys, puts, immediate=immediate and len(puts) == 1)
        self.model.now = self.clock()
        self.ripen()
        now = self.model.now
        firsts = [
            Job(put.id, b"", 4, 0, 0, unique=put.unique, due=put.delay_ms and now + put.delay_ms)
            for put in puts
        ]
        others = self.model.stand_ins(firsts)
        due = {job.id for job in firsts if job.due}
        if any(put.id in others and put.unique.partition(":")[0][-1] == "f" for put in puts):
            self.refuse(call, "DUPLICATE")
            return
        if immediate and len(puts) == 1 and not self.model.knows(puts[0].id) and not others:
            # whether it is refused may depend on a job that is due by now
            put = puts[0]
            first = Job(
                put.id, put.envelope, 4, 0, 0, due=firsts[0].due, group=put.group, sort=put.sort
            )
            if not self.model.taker(first, 1):
                self.refuse(call, "NOCONSUMER")
                return
        sizes = [len(put.envelope) for put in puts if not self.model.knows(put.id)]
        if 0 < self.model.ring_bytes < max(sizes, default=0):
            self.refuse(call, "FULL")
            return
        reply = self.answer(call)
        known = len(self.model.accepted)
        new = [
            self.model.new_job(
                put.id,
                put.envelope,
                put.priority,
                put.max_deliveries,
                put.max_crashes,
                put.delay_ms and reply.now + put.delay_ms,
                put.ttl_ms,
                put.group,
                put.key,
                put.hold,
                put.sort,
                put.unique,
                put.front,
            )
            for put in puts
        ]
        assert {puts[one.place].id: one.id for one in reply.answered} == others
        later = {put.id: "scheduled" if put.id in due else "ready" for put in puts}
        for one in reply.answered:
            assert one.state == (self.model.state_of(one.id) or later[one.id])
        ordinary = all(put.terms == NORMAL_TERMS for put in puts)
        taker = self.model.enqueue(new, special=not ordinary)
        accepted = self.model.accepted[known:]
        assert reply.accepted == len(accepted)
        stored = [put.id for i, put in enumerate(puts) if i not in reply.known]
        assert [id for id in stored if id not in others] == accepted
        assert reply.handed_to == taker
        wrong = transitions.accepted_once(self.before, accepted)
        assert not wrong, wrong
        self.arrivals = sum(id not in due for id in accepted)

    @initialize(
        consumers=st.lists(st.tuples(ranks, windows), min_size=1, max_size=3),
        ready=st.integers(0, 4),
        later=st.booleans(),
        first=st.booleans(),
        everyday=st.booleans(),
        kind=st.sampled_from(KINDS),
    )
    def begin(
        self,
        consumers: list[tuple[int, tuple[int, int]]],
        ready: int,
        later: bool,
        first: bool,
        everyday: bool = False,
        kind: Kind = PLAIN,
    ) -> None:
        """A queue in use: some consumers, some jobs, in one order or the other. An everyday one has
        one level and no ranks, and its jobs come one by one."""
        self.everyday = everyday
        kind = kind if kind in self.kinds else self.kinds[0]
        self.run(commands.configure(self.keys, {"keep_ms": KEEP_MS, "v": kind.stamp}))
        self.kind = kind
        self.model.grouped = self.grouped
        self.set_ring(2, 25)
        jobs = [(4, 0, 0, 1 + i % 2, 1) for i in range(ready)] + [(4, 800, 0, 0, 1)] * later
        self.before = take_snapshot(self.client, self.keys)
        if first and jobs:
            self.enqueue_all(jobs, False)
        for rank, window in consumers:
            self.register("acquire", rank, window, 1, 6000)
        if not first and jobs:
            self.enqueue_all(jobs, False)
        self.before, self.arrivals = take_snapshot(self.client, self.keys), 0

    @precondition(lambda self: "ring" in self.kind.policies)
    @rule(ring=st.sampled_from([0, 1, 2, 2, 4]), size=st.sampled_from([0, 20, 100, 300]))
    def set_ring(self, ring: int, size: int = 0) -> None:
        """How many jobs, and bytes, are kept."""
        if "ring" in self.kind.policies:
            options = {"ring_jobs": ring}
            if "ring_bytes" in self.kind.policies:
                options["ring_bytes"] = self.model.ring_bytes = size
            self.run(commands.configure(self.keys, options))
            self.model.ring = ring
            self.model.trim(0)

    @precondition(lambda self: self.fronting)
    @rule(lifo=st.booleans())
    def set_lifo(self, lifo: bool) -> None:
        """Whether all jobs come to the front."""
        self.run(commands.configure(self.keys, {"lifo": int(lifo)}))
        self.model.lifo = lifo

    @precondition(lambda self: len(self.model.consumers) < CONSUMERS_MAX)
    @rule(
        mode=st.sampled_from(["acquire"] * 5 + ["browse"]),
        priority=ranks,
        window=windows,
        slots=st.integers(1, 2),
        lease=st.sampled_from([6000, 30_000]),
    )
    def join(
        self, mode: Any, priority: int, window: tuple[int, int], slots: int, lease: int
    ) -> None:
        self.register(mode, priority, window, slots, lease)

    def register(
        self, mode: Any, priority: int, window: tuple[int, int], slots: int, lease: int
    ) -> None:
        priority = 0 if self.everyday else priority
        self.names += 1
        name = f"c{self.names}"
        options, make = self.consumer(
            name, {"mode": mode, "priority": priority, "window": Window(*window)}
        )
        call = commands.register(self.keys, name, lease_ms=lease, slots=slots, **options)
        now, term, state = self.answer(call)
        c = make(name, mode, priority, *window, slots, now + lease, 0)
        self.model.register(c)
        assert (term, state) == (str(c.term), c.state)
        self.mine[name] = {}
