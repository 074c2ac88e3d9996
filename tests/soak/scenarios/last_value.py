"""Last values: of a key the newest job runs, and none is displaced but by a newer one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rqueue.tasks.options import Options
from tests.soak.cases import alike, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Job
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

KEYS = 2
BATCH = 3


def enqueue(publisher: Publisher) -> None:
    """Some values of one key, one after the other."""
    key = f"{publisher.name}/{publisher.random.randrange(KEYS)}"
    for _ in range(BATCH):
        publisher.send("last_value", Options(key=key), key=key)


def _keys(evidence: Evidence) -> Iterator[tuple[str, list[Job]]]:
    jobs = SCENARIO.jobs(evidence)
    yield from alike(jobs, lambda job: str(job.facts["key"])).items()


def newest(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """The newest value of a key was not done."""
    for key, jobs in _keys(evidence):
        stored = [job for job in jobs if job.accepted]
        newer = stored and any(job.key[1] > stored[-1].key[1] and job.unknown for job in jobs)
        if stored and not newer:
            yield f"{key}: {said(stored[-1])} is the newest" * (not stored[-1].done)


def backwards(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """An older value first began behind a newer one, and nobody else can have held it."""
    for key, jobs in _keys(evidence):
        firsts = sorted((job for job in jobs if job.begins), key=lambda job: job.begun)
        for before, job in pairwise(firsts):
            older = job.key[1] < before.key[1]
            held = older and causes.others_held(job.begins[0].pid, before.begun)
            yield f"{key}: {said(job)} after {said(before)}" if older and not held else ""


def displaced(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job was displaced, and there is no newer one of its key."""
    for key, jobs in _keys(evidence):
        stored = [job.key[1] for job in jobs if job.accepted or job.unknown]
        for job in jobs:
            if any(row["outcome"] == "displaced" for row in job.finals):
                yield f"{key}: {said(job)}" * (max(stored) <= job.key[1])


SCENARIO = Scenario(
    "last_value",
    {"last_value": {"kind": "last_value"}},
    enqueue,
    {
        "the newest is lost": newest,
        "an older one behind a newer one": backwards,
        "displaced by nobody": displaced,
    },
    rate=1,
    served="line",
    may=("displaced",),
)
