"""How far a test's clock moves at once, as far as jobs run on the way."""

from __future__ import annotations

from collections import Counter

from rqueue.testing.one_thread_worker import Drained
from rqueue.text.numbers import many

__all__ = ["TRAVELLED", "too_many"]

TRAVELLED = 10_000
"""Jobs that one `travel` runs at the most, where it does not say how many."""


def too_many(drained: Drained, moved_ms: int, whole_ms: int) -> str:
    """What is said where more jobs are due on the way than may run."""
    (task, times), *_ = Counter(one.task for one in drained.jobs).most_common(1)
    return (
        f"{many(drained.ran, 'job')} ran, {times:,} of them of task '{task}', and there are more;"
        f" the clock has moved {moved_ms / 1000:,.0f} of {whole_ms / 1000:,.0f} s."
        " travel(..., most=N) lets N of them run, run=False none"
    )
