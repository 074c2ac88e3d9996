"""How long unstarted jobs wait for a slot of an executor before they go back."""

from typing import Any

import pytest

from rqueue_workers.worker.demand import places_in
from rqueue_workers.worker.executors.base import Executor, Job


def busy_executor(slots: int, seconds: float) -> Executor:
    """An executor whose slots are taken, whose jobs last so long, and where one job waits."""
    made = Executor(slots, 1, None, None, lambda: None)  # type: ignore[arg-type]
    for _ in range(40):
        made.credit.sample(1, seconds)
    for slot in range(slots):
        made.running[slot] = waiting()
    made.todo.append(waiting())
    return made


def waiting() -> Job:
    subscription: Any = type("Subscription", (), {"back": []})()
    return Job(subscription, b"id", b"1,2;x", 0, b"1,2", None, [], {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slots", "seconds", "patience"),
    [
        (100, 0.001, 0.05),
        (100, 0.1, 0.15),  # jobs that began together end together: what waits may wait for that
        (100, 0.2, 0.3),
        (100, 1.0, 0.05),  # nobody waits for a long one
        (100, 10.0, 0.3),  # but one slot in a hundred is soon free
        (1, 0.1, 0.3),
    ],
)
def test_patience_is_a_wave_of_short_jobs(slots: int, seconds: float, patience: float) -> None:
    full = busy_executor(slots, seconds)
    since = full.todo[0].since
    again, released = full.stall(since + 0.9 * patience)
    assert again == pytest.approx(0.1 * patience, rel=0.01) and not released
    assert len(full.todo) == 1
    (job,) = full.todo
    again, released = full.stall(since + 1.01 * patience)
    assert (again, released) == (0.0, {job.subscription})
    assert (list(full.todo), full.blocked, places_in(full)) == ([], True, (full.slots, 0))
