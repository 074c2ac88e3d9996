"""What the steps of the search choose from."""

from __future__ import annotations

from hypothesis import strategies as st

from rqueue.protocol.policies import PLAIN, Kind

KEEP_MS = 5_000
CAUSE = b'{"kind":"crash","type":"Killed"}'
ERROR = b'{"kind":"exception","type":"ValueError"}'
CONSUMERS_MAX = 6

some = st.integers(0, 11)
"""Picks one of what is there, whatever that is."""
picks = st.lists(some, max_size=4)
windows = st.tuples(st.sampled_from([3, 2, 10, 3, 1, 0]), st.sampled_from([0, 0, 0, 150, 300]))
ranks = st.sampled_from([0, 0, 0, 0, 1, -1])
priorities = st.sampled_from([4, 4, 4, 9, 0])
delays = st.sampled_from([0, 0, 0, 0, 800, 800, 3000])
limits = st.sampled_from([0, 0, 0, 1, 2, -1, -2, -4])
"""Attempts that a job may have; negative: crashes."""
paddings = st.sampled_from([0, 0, 60, 200])
groups = st.sampled_from(["", "a", "a", "b", "b", "c"])
"""Of groups or of keys."""
NO_GROUPS = ("",) * 12
KINDS = (
    PLAIN,
    *(Kind.of([policy]) for policy in ("groups", "last_value", "ring", "hold", "front", "sorted")),
    Kind.of(["ring_bytes"]),
)
