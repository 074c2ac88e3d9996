"""A ring holds so many ready jobs and no more, and displaces only because of newer ones."""

from __future__ import annotations

from collections.abc import Iterator

from rqueue.errors import RQueueError
from rqueue.tasks.options import NO_OPTIONS
from tests.soak.cases import said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

MOST = 4


def enqueue(publisher: Publisher) -> None:
    """More jobs than it holds, and a look."""
    for _ in range(publisher.random.randrange(3 * MOST)):
        publisher.send("ring", NO_OPTIONS)
    try:
        ready = publisher.queue("ring").counts().ready
    except RQueueError:
        return
    publisher.record("looked at ring", ready=ready)


def holds(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """At no look more jobs are ready than it holds."""
    for record in evidence.records["looked at ring"]:
        yield f"{record['ready']} ready in a ring of {MOST}" * (record["ready"] > MOST)


def displaced(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job was displaced, and fewer than the ring holds were sent behind it: the soak's own last
    job is one more."""
    jobs = [job for job in SCENARIO.jobs(evidence) if job.accepted or job.unknown]
    for job in jobs:
        if any(row["outcome"] == "displaced" for row in job.finals):
            behind = sum(other.at > job.at for other in jobs)
            yield f"{said(job)}: {behind} behind it" * (behind < MOST - 1)


SCENARIO = Scenario(
    "ring",
    {"ring": {"ring": MOST}},
    enqueue,
    {"more than it holds": holds, "displaced without need": displaced},
    rate=0.5,
    may=("displaced",),
)
