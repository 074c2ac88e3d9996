"""Fair share: who has much waiting gets no more than others, but for its weight."""

from __future__ import annotations

from collections.abc import Iterator

from rqueue.tasks.options import Options
from tests.soak.cases import rounds
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.field import Field
from tests.soak.publisher import Publisher
from tests.soak.rounds import one_round
from tests.soak.scenario import Scenario

WEIGHTS = {"gold": 3, "free": 1, "trial": 1}
JOBS = 10


def prepare(field: Field) -> None:
    """One share has a weight."""
    with field.queue("shares") as queue:
        queue.shares.set("gold", WEIGHTS["gold"])


def finish(field: Field) -> None:
    """None has."""
    with field.queue("shares") as queue:
        queue.shares.reset("gold")


def enqueue(publisher: Publisher) -> None:
    """A round: as many jobs of each share, one share after the other."""
    jobs = [(Options(share=share), {"share": share}) for share in WEIGHTS for _ in range(JOBS)]
    one_round(publisher, "shares", jobs)


def judge(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """Among the first jobs of a round, while every share has some, each share has its part: no
    share is more than one job ahead of another's part."""
    for its, jobs in rounds(SCENARIO.name, evidence, causes):
        had = dict.fromkeys(WEIGHTS, 0)
        wrong = ""
        for place, job in enumerate(jobs, 1):
            had[job.facts["share"]] += 1
            turns = [had[share] / weight for share, weight in WEIGHTS.items()]
            if max(had.values()) == JOBS:
                break
            if max(turns) - min(turns) > AHEAD and not wrong:
                wrong = f"{its}: after {place} jobs {had}"
        yield wrong


AHEAD = 2.0
"""Turns that one share may be ahead of another: one, and one that an earlier round left."""

SCENARIO = Scenario(
    "shares",
    {"shares": {}},
    enqueue,
    {"one share ahead": judge},
    rate=0.1,
    served="line",
    prepare=prepare,
    finish=finish,
)
