"""Jobs that are moved to another queue and back, while workers take them: each ends once, and a
delayed one keeps its time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from rqueue.errors import RQueueError
from rqueue.tasks.options import Options
from tests.soak.cases import never_early, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

QUEUES = ("move_a", "move_b")


def enqueue(publisher: Publisher) -> None:
    """A job, and now and then all that wait go over."""
    here, there = publisher.random.sample(QUEUES, 2)
    delay = publisher.random.choice((0, 0, 500, 2000))
    publisher.send(here, Options(delay_ms=delay) if delay else Options(), delay=delay)
    if publisher.random.random() < 0.2:
        with suppress(RQueueError):  # what it moved is there, the others are here
            publisher.queue(here).move_all(there)


def judge(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job that was moved ends in one queue."""
    for job in SCENARIO.jobs(evidence):
        if any(row["outcome"] == "moved" for row in job.rows):
            ends = [row["queue"] for row in job.finals]
            yield f"{said(job)}: ended in {ends}" * (len(ends) != 1)


SCENARIO = Scenario(
    "move",
    {name: {} for name in QUEUES},
    enqueue,
    {"moved and not ended once": judge, "too early": never_early("move")},
    rate=2,
)
