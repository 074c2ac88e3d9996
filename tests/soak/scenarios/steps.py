"""Durable steps: what is kept is not done again, whatever becomes of the worker."""

from __future__ import annotations

import os
import random
import signal
from collections import defaultdict
from collections.abc import Iterator

from rqueue import current_job, task
from rqueue.errors import RedisUnavailable
from rqueue.tasks.options import Options
from tests.soak.cases import said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Key
from tests.soak.publisher import Publisher
from tests.soak.records import Record
from tests.soak.scenario import Scenario
from tests.soak.tasks import AGAIN, Wanted, note

STEPS = ("a", "b", "c")


@task(name="soak.steps", queue="steps", retry=AGAIN)
def steps(publisher: str, number: int, how: str = "") -> None:
    """Three steps; behind one of them the first attempt may fail, or take its process along."""
    job = current_job()
    assert job is not None
    note("begin", publisher, number)

    def do(name: str) -> int:
        value = random.randrange(10**9)
        note("did", publisher, number, step=name, value=value)
        return value

    for name in STEPS:
        try:
            value = job.step(name, do, name)
        except RedisUnavailable:
            note("fail", publisher, number)
            raise Wanted from None
        note("kept", publisher, number, step=name, value=value)
        if job.attempts == 0 and how == f"fail-{name}":
            note("fail", publisher, number)
            raise Wanted
        if job.attempts == 0 and how == f"die-{name}":
            note("dies", publisher, number, how=how)
            os.kill(os.getpid(), signal.SIGKILL)
    note("end", publisher, number)


def enqueue(publisher: Publisher) -> None:
    """A job; some fail, few take their process along."""
    draw = publisher.random.random()
    how = "die-" if draw < 0.02 else "fail-" if draw < 0.4 else ""
    how = how and how + publisher.random.choice(STEPS)
    number = publisher.sent("steps", how=how)
    arguments = (publisher.name, number, how)
    its = Options(id=publisher.id(number))
    queue = publisher.queue("steps")
    publisher.attempt([number], lambda: queue.send("soak.steps", arguments, None, its))


def _notes(evidence: Evidence, what: str) -> dict[tuple[Key, str], list[Record]]:
    found = defaultdict(list)
    for record in evidence.records[what]:
        found[(record["publisher"], record["number"]), record["step"]].append(record)
    return found


def again(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A step was done in an attempt that began after it was kept."""
    did = _notes(evidence, "did")
    for (key, step), kept in _notes(evidence, "kept").items():
        job, since = evidence.jobs[key], kept[0]["at"]
        for record in did[key, step]:
            begun = max(
                (b.at for b in job.begins if b.pid == record["pid"] and b.at <= record["at"]),
                default=0.0,
            )
            after = record["at"] - since
            yield f"{said(job)}: step {step} again after {after:.3f} s" * (begun > since)


def values(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Two attempts got different results of one step."""
    for (key, step), kept in _notes(evidence, "kept").items():
        found = sorted({record["value"] for record in kept})
        yield f"{said(evidence.jobs[key])}: step {step} returned {found}" * (len(found) > 1)


SCENARIO = Scenario(
    "steps",
    {"steps": {}},
    enqueue,
    {"done again though kept": again, "another result": values},
    rate=2,
)
