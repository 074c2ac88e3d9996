"""Jobs that keep their place until a time: once due they go before what was enqueued later."""

from __future__ import annotations

from collections.abc import Sequence

from rqueue.tasks.options import Options
from tests.soak.cases import in_rounds, never_early
from tests.soak.evidence import Job
from tests.soak.publisher import Publisher
from tests.soak.rounds import one_round
from tests.soak.scenario import Scenario

JOBS = 6
DELAY_MS = 200


def enqueue(publisher: Publisher) -> None:
    """A round in which some have to wait for their time, and all of them could then begin."""
    jobs = []
    for _ in range(JOBS):
        delay = DELAY_MS if publisher.random.random() < 0.5 else 0
        options = Options(delay_ms=delay, hold=True) if delay else Options()
        jobs.append((options, {"delay": delay}))
    one_round(publisher, "hold", jobs, wait=DELAY_MS / 1000 + 0.1)


def order(jobs: Sequence[Job]) -> list[Job]:
    """As they were sent."""
    return sorted(jobs, key=lambda job: job.key[1])


SCENARIO = Scenario(
    "hold",
    {"hold": {}},
    enqueue,
    {"place lost": in_rounds("hold", order), "too early": never_early("hold")},
    rate=0.2,
    served="line",
)
