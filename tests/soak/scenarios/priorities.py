"""Priorities: of jobs that all wait the higher ones begin first, equal ones in their order."""

from __future__ import annotations

from collections.abc import Sequence

from rqueue.tasks.options import Options
from tests.soak.cases import in_rounds
from tests.soak.evidence import Job
from tests.soak.publisher import Publisher
from tests.soak.rounds import one_round
from tests.soak.scenario import Scenario

JOBS = 12


def enqueue(publisher: Publisher) -> None:
    """A round of jobs of all levels."""
    drawn = [publisher.random.randrange(10) for _ in range(JOBS)]
    jobs = [(Options(priority=level), {"level": level}) for level in drawn]
    one_round(publisher, "priorities", jobs)


def order(jobs: Sequence[Job]) -> list[Job]:
    """By priority, then as they were sent."""
    return sorted(jobs, key=lambda job: (-job.facts["level"], job.key[1]))


SCENARIO = Scenario(
    "priorities",
    {"priorities": {"priorities": 10}},
    enqueue,
    {"a lower one first": in_rounds("priorities", order)},
    rate=0.2,
    served="line",
)
