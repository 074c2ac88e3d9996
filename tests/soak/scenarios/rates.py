"""Token buckets: each one is new, and is used up by a batch."""

from __future__ import annotations

from collections.abc import Iterator

from rqueue.client._sync.queue import Call
from rqueue.model.job_limit import JobLimit
from rqueue.tasks.options import Options
from tests.soak.cases import CLOCKS_S, alike
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

JOBS = 8
BURST = 2
EVERY_S = 0.2


def enqueue(publisher: Publisher) -> None:
    """A batch for one bucket."""
    bucket = f"{publisher.name}/{publisher.number()}"
    rate = JobLimit("calls", 5, bucket, per_ms=round(EVERY_S * 5000), burst=BURST)
    numbers = [publisher.sent("rates", bucket=bucket) for _ in range(JOBS)]
    calls = [
        Call(
            "soak.step",
            (publisher.name, number, 0.0, ""),
            None,
            Options(id=publisher.id(number), limit=rate),
        )
        for number in numbers
    ]
    publisher.attempt(numbers, lambda: publisher.queue("rates").enqueue_many(calls))


def judge(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """No job begins before its bucket can have had a token for it."""
    for bucket, jobs in alike(
        SCENARIO.jobs(evidence), lambda job: str(job.facts["bucket"])
    ).items():
        since = jobs[0].at
        for place, begun in enumerate(sorted(job.begun for job in jobs if job.begins)):
            early = since + max(0, place + 1 - BURST) * EVERY_S - begun
            yield f"{bucket}: number {place + 1} {early:.3f} s early" if early > CLOCKS_S else ""


SCENARIO = Scenario("rates", {"rates": {}}, enqueue, {"faster than the rate": judge}, rate=0.3)
