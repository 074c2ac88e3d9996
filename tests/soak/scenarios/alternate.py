"""Redis's outbox: a job that dies goes to another queue, and runs there once."""

from __future__ import annotations

from collections.abc import Iterator

from rqueue.tasks.options import NO_OPTIONS
from tests.soak.cases import said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.field import Field
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

QUEUE, TARGET = "alternate", "alternate_dead"
REJECTED = f"reject-{QUEUE}"


def enqueue(publisher: Publisher) -> None:
    """A job that is rejected in its own queue, or one that is not."""
    publisher.send(QUEUE, NO_OPTIONS, REJECTED * (publisher.random.random() < 0.5))


def look(field: Field) -> None:
    """What is left of a queue that gets the dead letters of another one."""
    with field.queue(QUEUE) as queue:
        queue.configure(dead_to="")


def judge(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job that was rejected ended once in the other queue."""
    for job in SCENARIO.jobs(evidence):
        if job.how == REJECTED and job.accepted:
            ends = [row["outcome"] for row in job.finals if row["queue"] == TARGET]
            yield f"{said(job)}: ended there as {ends}" * (ends != ["ack"])


SCENARIO = Scenario(
    "alternate",
    {TARGET: {}, QUEUE: {"dead_to": TARGET}},
    enqueue,
    {"dead and not handed on once": judge},
    rate=2,
    may=("dead",),
    look=look,
)
