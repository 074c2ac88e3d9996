"""The machine with unique jobs: some until they have ended or are taken, others for a period."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rqueue.protocol import commands
from rqueue.protocol.policies import PLAIN, Kind
from tests.property.choices import NO_GROUPS, delays, groups, limits, paddings, priorities, some
from tests.property.machine import Machine

uniques = st.sampled_from(
    [
        *("", "ex:a", "ex:a", "sx:a", "ef:a", "800x:a", "ex:b", "sf:b", "3000f:b"),
        *("sr:a", "sr:a", "sd:a", "sd2000:a", "900t:a", "sr:b", "sd900:b", "3000t:b"),
    ]
)


class UniqueMachine(Machine):
    """A queue takes the policy on with the first unique job."""

    kinds = (PLAIN, Kind.of(["groups"]))

    @rule(
        jobs=st.lists(
            st.tuples(st.tuples(priorities, delays, paddings, limits, some), uniques),
            min_size=1,
            max_size=4,
        ),
        immediate=st.booleans(),
        names=st.lists(groups, min_size=4, max_size=4),
    )
    def enqueue_unique(
        self,
        jobs: list[tuple[tuple[int, int, int, int, int], str]],
        immediate: bool,
        names: Sequence[str] = NO_GROUPS,
    ) -> None:
        if self.everyday:
            jobs = [((4, 0, job[2], 0, job[4]), unique) for job, unique in jobs[:1]]
        names = names if self.grouped else NO_GROUPS
        uniques = [unique for _, unique in jobs]
        self.enqueue_all([job for job, _ in jobs], immediate, (), names, uniques)

    @precondition(lambda self: self.model.unique)
    @rule(key=st.sampled_from(["a", "b"]), clear=st.sampled_from([False, False, True]))
    def look_at_key(self, key: str, clear: bool) -> None:
        """Who has it; and perhaps nobody from then on."""
        self.model.now = self.clock()
        owner = self.model.unique.get(key, "")
        if owner not in self.model.jobs and self.model.periods.get(key, 0) <= self.model.now:
            owner = ""
        assert self.answer(commands.key_owner(self.keys, key, clear=clear)) == owner
        if clear:
            self.model.unique.pop(key, None)
            self.model.periods.pop(key, None)
