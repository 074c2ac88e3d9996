"""Jobs that are cancelled while they wait, are held, or run."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rqueue import Cancellation, task
from rqueue.client._sync.queue import Call
from rqueue.errors import RQueueError
from rqueue.tasks.options import Options
from tests.soak.cases import said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Job
from tests.soak.publisher import Publisher
from tests.soak.records import Record
from tests.soak.scenario import Scenario
from tests.soak.tasks import note

JOBS = 4
PULSE_S = 0.02
LATE_S = 2.0
"""Seconds between the last look and the first line of a job, on a busy machine."""


@task(name="soak.pulse", queue="cancel")
def pulse(publisher: str, number: int, seconds: float) -> None:
    """Run for a while, and say so again and again."""
    note("begin", publisher, number)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(PULSE_S)
        note("pulse", publisher, number)
    note("end", publisher, number)


def enqueue(publisher: Publisher) -> None:
    """One job that runs for a while and some behind it; then some of them are cancelled."""
    queue = publisher.queue("cancel")
    delay = publisher.random.choice((0, 0, 0, 400))
    numbers = [publisher.sent("cancel", delay=delay) for _ in range(JOBS)]
    calls = []
    for number in numbers:
        seconds = 0.5 if number == numbers[0] else 0.05
        options = Options(id=publisher.id(number), delay_ms=delay or None)
        calls.append(Call("soak.pulse", (publisher.name, number, seconds), None, options))
    if publisher.attempt(numbers, lambda: queue.enqueue_many(calls)) is None:
        return
    publisher.over.wait(publisher.random.choice((0.0, 0.05, 0.2)))
    for number in publisher.random.sample(numbers, 2):
        # a client that asks and gets no answer has asked all the same
        publisher.record("cancelling", id=publisher.id(number))
        running = publisher.random.random() < 0.5
        seconds = publisher.random.choice((0.0, 1.0))
        try:
            answer = queue.cancel(publisher.id(number), running=running, timeout=seconds)
        except RQueueError:
            continue
        publisher.record("cancelled", id=publisher.id(number), answer=answer.name)


def _answers(evidence: Evidence, *answers: Cancellation) -> Iterator[tuple[Record, Job]]:
    """The answers of this kind, and their jobs."""
    known = {job.id: job for job in SCENARIO.jobs(evidence)}
    for record in evidence.records["cancelled"]:
        if record["answer"] in [answer.name for answer in answers]:
            yield record, known[record["id"]]


def still_ran(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """The answer was that nothing of the job runs, and then it began, or went on."""
    latest: dict[str, float] = {}
    for what in ("begin", "pulse", "end"):
        for record in evidence.records[what]:
            latest[record["id"]] = max(latest.get(record["id"], 0.0), record["at"])
    for record, job in _answers(evidence, Cancellation.ENDED):
        late = latest.get(job.id, 0.0) - record["at"]
        yield f"{said(job)}: {late:.3f} s after the answer ENDED" * (late > 0)


def began(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """A job began long after it was cancelled: a worker hears of it within a moment, or asks; only
    while Redis is away its knowledge may be older, by a third of the lease."""
    most = causes.lease / 3 + LATE_S
    asked = (Cancellation.REQUESTED, Cancellation.DELIVERED)
    for record, job in _answers(evidence, *asked):
        late = job.begun - record["at"]
        yield f"{said(job)}: {late:.3f} s after {record['answer']}" * (late > most)


def refused(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """The answer was that the job has ended, and it began later."""
    for record, job in _answers(evidence, Cancellation.NONE):
        late = job.begun - record["at"]
        yield f"{said(job)}: {late:.3f} s after the answer NONE" * (late > 0)


SCENARIO = Scenario(
    "cancel",
    {"cancel": {}},
    enqueue,
    {
        "cancelled, and ran": still_ran,
        "cancelled, and began": began,
        "not cancelled, and began": refused,
    },
    rate=0.5,
    may=("cancelled",),
)
