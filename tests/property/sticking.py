"""A search of its own: groups that are their consumers', in any order with all else. There is no
model beside it: what must always hold says whose a ready job is, and who is notified of it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried
from rqueue.protocol.policies import Kind
from tests.property.choices import CAUSE, ERROR, delays, priorities, some, windows
from tests.property.refusing import RefusingMachine
from tests.support import sticky_invariants as sticky
from tests.support import transitions
from tests.support.snapshot import take_snapshot

GROUPS = ("", "a", "b", "c", "d", "e")
"""In two or three buckets some of them collide."""

OUTCOMES = ("ack", "ack", "ack", "release", "later", "now", "tail", "reject")
PLACES = {"later": (800, "head"), "now": (0, "old"), "tail": (0, "tail")}


class StickingMachine(RefusingMachine):
    """One queue, up to five consumers, of which none refuses anything."""

    @initialize(
        buckets=st.sampled_from([1, 2, 3, 1024]),
        rebalance=st.booleans(),
        consumers=st.lists(windows, min_size=1, max_size=3),
    )
    def begin(  # type: ignore[override]
        self, buckets: int, rebalance: bool, consumers: list[tuple[int, int]]
    ) -> None:
        options = {"sticky": buckets, "rebalance": int(rebalance)}
        self.run(commands.configure(self.keys, options))
        self.kind = Kind.of(["sticky"])
        for window in consumers:
            self.join(window, 0)
        self.before = take_snapshot(self.client, self.keys)

    @rule(
        jobs=st.lists(
            st.tuples(st.sampled_from(GROUPS), priorities, delays), min_size=1, max_size=3
        )
    )
    def put(self, jobs: list[tuple[str, int, int]]) -> None:  # type: ignore[override]
        ids = [f"j{len(self.accepted) + number}" for number in range(len(jobs))]
        puts = [
            Put(id, b'["t"]', level, delay, group=group)
            for id, (group, level, delay) in zip(ids, jobs, strict=True)
        ]
        self.run(commands.enqueue(self.keys, puts))
        self.accepted += ids

    def pull_by(self, name: str) -> None:
        """It gets all that is its own, as far as it has room."""
        window = self.windows[name]
        self.run(commands.pull(self.keys, name, self.terms[name], window))
        after = take_snapshot(self.client, self.keys)
        free = window.jobs - len(after.held.get(name, ()))
        if free > 0 and not window.bytes and after.meta.get("paused") != "1":
            assert not after.own.get(name), f"{name} pulled, and {after.own[name]} are its own"

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
        self.run(
            commands.settle(
                self.keys,
                name,
                self.terms[name],
                self.windows[name] if pulls else None,
                ack=[id for id, outcome in said if outcome == "ack"],
                retry=[
                    Retried(id, *PLACES[how], False, ERROR) for id, how in said if how in PLACES
                ],
                reject=[(id, CAUSE) for id, outcome in said if outcome == "reject"],
                release=[id for id, outcome in said if outcome == "release"],
                freed=sum(len(self.before.jobs[id]) for id, _ in said),
            )
        )

    @precondition(lambda self: self.before.hash("owners"))
    @rule(pick=some, all_of_it=st.booleans())
    def reset(self, pick: int, all_of_it: bool) -> None:
        """A bucket is nobody's any more, or what a consumer owns."""
        owners = sorted(sticky.owners(self.before).items())
        bucket, name = owners[pick % len(owners)]
        call = commands.group_owner(
            self.keys,
            bucket=None if all_of_it else int(bucket),
            consumer=name if all_of_it else "",
            reset=True,
        )
        assert self.run(call).owner == name

    @invariant()
    def owners_stay(self) -> None:
        """A bucket changes its owner only where that has left, or it is taken away; nobody else
        takes a job of it."""
        after = take_snapshot(self.client, self.keys)
        before, now = sticky.owners(self.before), sticky.owners(after)
        for bucket, name in now.items():
            was = before.get(bucket, name)
            assert was == name or was not in after.consumers, f"{bucket} went to {name}"
        for name, ids in transitions.newly_held(self.before, after).items():
            for id in ids:
                head = after.header(id)
                whose = now.get(head.bucket) if head and head.bucket else name
                assert whose == name, f"{name} took {id}, which is {whose}'s"
