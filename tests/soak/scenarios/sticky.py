"""Sticky groups: in order, and with one consumer as long as that is there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rqueue.tasks.options import Options
from tests.soak.cases import alike, one_after_another, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

GROUPS = 4


def enqueue(publisher: Publisher) -> None:
    """A job of a group."""
    group = f"{publisher.name}/{publisher.random.randrange(GROUPS)}"
    publisher.send("sticky", Options(group=group), group=group)


def judge(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """Where another process goes on with a group, the one before has left: it begins no more."""
    jobs = SCENARIO.jobs(evidence)
    latest: dict[int, float] = {}
    for job in jobs:
        for begin in job.begins:
            latest[begin.pid] = max(latest.get(begin.pid, 0.0), begin.at)
    for group, its in alike(jobs, lambda job: str(job.facts["group"])).items():
        for before, job in pairwise([job for job in its if job.begins]):
            first, then = before.begins[-1], job.begins[0]
            stays = first.pid != then.pid and latest[first.pid] > then.at
            lost = stays and causes.of_loss(first.pid, first.at, latest[first.pid])
            yield (
                f"{group}: {said(job)} began in {then.pid} at {then.at:.3f}, and {first.pid} "
                f"was there until {latest[first.pid]:.3f}"
                if stays and not lost
                else ""
            )


SCENARIO = Scenario(
    "sticky",
    {"sticky": {"sticky": 16}},
    enqueue,
    {
        "out of order": one_after_another("sticky", lambda job: job.facts["group"]),
        "two owners": judge,
    },
    rate=3,
)
