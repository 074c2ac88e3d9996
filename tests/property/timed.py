"""The machine with jobs that have a time to live: some at once, others where jobs wait already."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import rule

from rqueue.protocol import commands
from rqueue.protocol.policies import PLAIN, Kind
from tests.property.choices import NO_GROUPS, delays, groups, limits, paddings, priorities, some
from tests.property.machine import Machine

ttls = st.sampled_from([0, 300, 800, 800, 3000])
bounds = st.sampled_from(
    [(0, 0, 0), (0, 0, 0), (800, 0, 0), (0, 500, 0), (0, 0, 2000), (1, 300, 900)]
)


class TimedMachine(Machine):
    """A queue takes the policy on with the first job that has a time to live, or with an option."""

    kinds = (PLAIN, Kind.of(["groups"]), Kind.of(["groups", "hold"]), Kind.of(["sorted"]))

    @rule(
        jobs=st.lists(
            st.tuples(st.tuples(priorities, delays, paddings, limits, some), ttls),
            min_size=1,
            max_size=4,
        ),
        immediate=st.booleans(),
        names=st.lists(groups, min_size=4, max_size=4),
    )
    def enqueue_timed(
        self,
        jobs: list[tuple[tuple[int, int, int, int, int], int]],
        immediate: bool,
        names: Sequence[str] = NO_GROUPS,
    ) -> None:
        if self.everyday:
            jobs = [((4, 0, job[2], 0, job[4]), ttl) for job, ttl in jobs[:1]]
        names = names if self.named else NO_GROUPS
        self.enqueue_all([job for job, _ in jobs], immediate, [ttl for _, ttl in jobs], names)

    @rule(ttl=bounds, kept_dead=st.booleans())
    def set_ttl(self, ttl: tuple[int, int, int], kept_dead: bool) -> None:
        names = ("ttl_ms", "ttl_min_ms", "ttl_max_ms")
        options = dict(zip(names, ttl, strict=True)) | {"ttl_dead": int(kept_dead)}
        self.run(commands.configure(self.keys, options))
        self.model.ttl, self.model.kept_dead = ttl, kept_dead
