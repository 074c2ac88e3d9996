"""Times to live: an expired job does not begin, and none expires before its time is over."""

from __future__ import annotations

from collections.abc import Iterator

from rqueue.tasks.options import Options
from tests.soak.cases import said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

TIMES = (0.3, 1.0, 3.0)

LATE_S = 2.0
"""Seconds between the last look at the time and the first line of a job, on a busy machine."""

EARLY_S = 0.1
"""How far Redis's clock, the machine's and the time of a row may be apart."""


def enqueue(publisher: Publisher) -> None:
    """A job that has little time, and sometimes one that keeps a worker busy."""
    ttl = publisher.random.choice(TIMES)
    how = "fail" if publisher.random.random() < 0.1 else ""
    publisher.send("ttl", Options(ttl=ttl), how, ttl=ttl)


def begun_late(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """A job began after its end, and its process was not stopped meanwhile."""
    for job in SCENARIO.jobs(evidence):
        if not job.accepted:
            continue
        for begin in job.begins:
            late = begin.at - job.answered - job.facts["ttl"]
            frozen = causes.stood_still(begin.pid, begin.at - late, begin.at)
            yield f"{said(job)}: {late:.3f} s after its end" if late - frozen > LATE_S else ""


def ended_early(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job expired before its time was over."""
    for job in SCENARIO.jobs(evidence):
        for row in job.finals:
            if row["outcome"] == "expired":
                early = job.at + job.facts["ttl"] - row["written"]
                yield f"{said(job)}: {early:.3f} s too early" if early > EARLY_S else ""


SCENARIO = Scenario(
    "ttl",
    {"ttl": {"ttl": 60}},
    enqueue,
    {"begun after its end": begun_late, "expired too early": ended_early},
    rate=3,
    may=("expired",),
)
