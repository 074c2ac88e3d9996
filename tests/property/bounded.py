"""The machine in a bounded queue, with producers that wait for room. What fits is what a look at
all places says, not what a counter does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from redis.exceptions import ResponseError

from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.commands.room import with_grant
from rqueue.protocol.policies import PLAIN, Kind
from tests.property.choices import KINDS, ranks, some, windows
from tests.property.machine import Machine
from tests.support import invariants, room_invariants
from tests.support.snapshot import take_snapshot

Bound = tuple[int, bool, int, bool, int]

bounds = st.tuples(
    st.sampled_from([1, 2, 3, 5, 5, 0]),
    st.sampled_from([True, True, False]),
    st.sampled_from([80, 80, 100, 40]),
    st.sampled_from([False, False, True]),
    st.sampled_from([0, 0, 25, 100, 300]),
)
"""A limit, whether producers wait, percent at which they go on, whether held jobs count, a limit in
bytes."""

WAIT_MS = 6000
BODY = b'["t"]'
"""The envelope of a producer that waited for room."""


class BoundedMachine(Machine):
    """A queue takes the policy on, and changes its limit, while jobs are there."""

    kinds = tuple(kind for kind in KINDS if "ring" not in kind.policies)

    def enqueue_all(
        self,
        jobs: list[tuple[int, int, int, int, int]],
        immediate: bool,
        ttls: Sequence[int] = (),
        names: Sequence[str] = (),
        uniques: Sequence[str] = (),
    ) -> None:
        again = jobs[0][4] == 0 and self.model.accepted
        bodies = [self.body(padding, index) for index, (_, _, padding, _, _) in enumerate(jobs)]
        if again and self.knows(jobs[0][2]):
            del bodies[0]
        new = len(bodies)
        if not new or self.fits(new, sum(map(len, bodies))):
            try:
                super().enqueue_all(jobs, immediate, ttls, names, uniques)
            except ResponseError as error:
                raise AssertionError(f"{new} jobs fit, and are refused") from error
        else:
            puts = [Put(f"n{i}", body) for i, body in enumerate(bodies)]
            self.refuse(commands.enqueue(self.keys, puts), "FULL")

    def knows(self, padding: int) -> bool:
        """Whether the queue still knows the job that `enqueue_all` would enqueue again."""
        return self.model.knows(self.model.accepted[-(padding % 7) - 1 :][0])

    @property
    def bound(self) -> tuple[int, bool, int]:
        """The limit, 0 where there is none, whether producers wait for room, the limit in bytes."""
        meta = self.before.meta
        if "bounded" not in meta.get("v", "").split():
            return 0, False, 0
        limit, size = int(meta.get("max_jobs", "0")), int(meta.get("max_bytes", "0"))
        return limit, meta.get("overflow") == "1", size

    def fits(self, jobs: int, size: int) -> bool:
        """Whether so many may come, of so many bytes, of a producer without a grant."""
        limit, blocks, limit_bytes = self.bound
        if not limit and not limit_bytes:
            return True
        before = self.before
        if blocks and before.scores("producers"):
            return False
        kept = int(before.meta.get("granted", "0"))
        kept_bytes = int(before.meta.get("granted_bytes", "0"))
        there = sum(room_invariants.bytes_by_job(before, before.places).values())
        return (not limit or jobs <= limit - invariants.bounded_count(before) - kept) and (
            not limit_bytes or size <= limit_bytes - there - kept_bytes
        )

    @initialize(
        consumers=st.lists(st.tuples(ranks, windows), min_size=1, max_size=3),
        ready=st.integers(0, 4),
        later=st.booleans(),
        first=st.booleans(),
        everyday=st.booleans(),
        kind=st.sampled_from(KINDS),
        bound=bounds,
    )
    def begin(
        self,
        consumers: list[tuple[int, tuple[int, int]]],
        ready: int,
        later: bool,
        first: bool,
        everyday: bool = False,
        kind: Kind = PLAIN,
        bound: Bound = (5, True, 80, False, 0),
    ) -> None:
        """As any queue begins; it is bounded then, with all that is there."""
        super().begin(consumers, ready, later, first, everyday, kind)
        self.set_bound(bound)
        self.before = take_snapshot(self.client, self.keys)
        self.kind = Kind.parse(self.before.meta["v"])

    @rule(bound=bounds)
    def set_bound(self, bound: Bound) -> None:
        limit, blocks, resume, held, size = bound
        options = {"max_jobs": limit, "overflow": int(blocks), "resume": resume}
        if weighed := room_invariants.weighed(take_snapshot(self.client, self.keys)):
            held = self.before.meta.get("count_held") == "1"
        if size or weighed:
            options["max_bytes"] = size
        self.run(commands.configure(self.keys, {**options, "count_held": int(held)}))

    @precondition(lambda self: self.bound[0] or self.bound[2])
    @rule(pick=some, jobs=st.sampled_from([1, 1, 2, 4]), more=st.sampled_from([0, 0, 10, 100]))
    def ask(self, pick: int, jobs: int, more: int = 0) -> None:
        """A producer waits, or says again that it does; where it has a grant it uses that, as its
        word comes."""
        producer = f"p{pick % 5}"
        if producer in self.before.scores("grants"):
            self.enter(producer)
            return
        size = jobs * len(BODY) + more
        state = self.answer(commands.await_room(self.keys, producer, jobs, WAIT_MS, size))
        after = take_snapshot(self.client, self.keys)
        limit, blocks, limit_bytes = self.bound
        if not blocks or 0 < limit < jobs or 0 < limit_bytes < size:
            assert state == "free"
            self.client.delete(self.keys.room(producer))
            return
        assert state == ("granted" if producer in after.scores("grants") else "waits")
        assert state == "granted" or producer in after.scores("producers")
        assert f"room:{producer}" in after.keys or state == "waits"
        if state == "granted":
            granted, too_many = int(after.meta["granted"]), "more is promised than fits"
            assert not limit or invariants.bounded_count(after) + granted <= limit, too_many
            there = int(after.meta.get("waiting_bytes", "0"))
            granted = int(after.meta.get("granted_bytes", "0"))
            assert not limit_bytes or there + granted <= limit_bytes, too_many

    def enter(self, producer: str) -> None:
        """It enqueues what it has a grant for: that is never refused."""
        wish = self.before.hash("wishes")[producer.encode()].split(b",")
        jobs, more = int(wish[0]), int(wish[2]) - int(wish[0]) * len(BODY)
        bodies = [BODY[:-1] + b" " * more + b"]", *[BODY] * (jobs - 1)]
        puts = [Put(f"j{len(self.model.accepted) + i}", body) for i, body in enumerate(bodies)]
        known = len(self.model.accepted)
        call: Any = with_grant(commands.enqueue(self.keys, puts), producer)
        try:
            reply = self.answer(call)
        except ResponseError as error:
            raise AssertionError("a grant is refused") from error
        assert reply.accepted == jobs
        new = [self.model.new_job(put.id, put.envelope, 4, 0, 0, 0, 0, "") for put in puts]
        assert reply.handed_to == self.model.enqueue(new, special=True)
        self.arrivals = len(self.model.accepted) - known
        after = take_snapshot(self.client, self.keys)
        assert producer not in {*after.scores("grants"), *after.scores("producers")}

    @precondition(lambda self: self.before.keys.get("wishes"))
    @rule(pick=some)
    def give_up(self, pick: int) -> None:
        """A producer gives up, or has no use for its grant: that is anybody else's then."""
        names = sorted(name.decode() for name in self.before.hash("wishes"))
        producer = names[pick % len(names)]
        assert self.answer(commands.await_room(self.keys, producer, 1, 0)) == "over"
        after = take_snapshot(self.client, self.keys)
        assert producer.encode() not in after.hash("wishes")
        assert f"room:{producer}" not in after.keys

    @invariant()
    def holds(self) -> None:
        """What always holds; and who has a grant came before all that still wait."""
        before = self.before
        super().holds()
        turns, waiting = before.scores("producers"), self.before.scores("producers")
        served = [turns[name] for name in self.before.scores("grants") if name in turns]
        passed = [turn for name, turn in turns.items() if name in waiting]
        assert not served or not passed or max(served) < min(passed), "a producer was overtaken"
