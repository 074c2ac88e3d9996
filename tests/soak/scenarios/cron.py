"""Schedules: each tick is one job, none is missed, none is early, and none overlaps where that is
not wanted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

from rqueue import Tick, task
from tests.soak.cases import CLOCKS_S, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Job
from tests.soak.field import Field
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario
from tests.soak.tasks import note

NAMES = ("interval", "expression", "skipping")
EVERY_MS = 1000


@task(name="soak.tick", queue="cron")
def ticked(schedule: str, tick: Tick | None = None) -> None:
    """Note the tick."""
    assert tick is not None
    number = round(tick.at.timestamp() * 1000)
    note("begin", f"cron.{schedule}", number, made="cron", wall=time.time())
    time.sleep(0.02)
    note("end", f"cron.{schedule}", number)


def prepare(field: Field) -> None:
    """Three schedules of one second."""
    with field.queue("cron") as queue:
        put = queue.schedules.set
        put("interval", "soak.tick", ["interval"], every=1, missed="all")
        put("expression", "soak.tick", ["expression"], cron="* * * * * *", missed="all")
        put("skipping", "soak.tick", ["skipping"], every=1, overlap="skip")


def finish(field: Field) -> None:
    """No more ticks."""
    with field.queue("cron") as queue:
        for name in NAMES:
            queue.schedules.remove(name)


def enqueue(_publisher: Publisher) -> None:
    """The queue does it by itself."""


def _ticks(evidence: Evidence, *names: str) -> Iterator[tuple[Job, Job]]:
    """Each tick of schedules, and the one before."""
    for name in names:
        its = [job for job in SCENARIO.jobs(evidence) if job.key[0] == f"cron.{name}"]
        yield from pairwise(sorted(its, key=lambda job: job.key[1]))


def missed(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Between two ticks that became jobs there is one that became none."""
    for before, job in _ticks(evidence, "interval", "expression"):
        gap = job.key[1] - before.key[1]
        yield f"{said(job)}: {gap} ms after the one before" * (gap != EVERY_MS)


def early(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A tick began before its time."""
    for job in SCENARIO.jobs(evidence):
        before = job.key[1] / 1000 - job.begins[0].facts["wall"]
        yield f"{said(job)}: {before:.3f} s too early" * (before > CLOCKS_S)


def twice(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A tick became two jobs: it ended more than once."""
    for job in SCENARIO.jobs(evidence):
        yield f"{said(job)}: ended {len(job.finals)} times" * (len(job.finals) > 1)


def overlap(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A tick began although the job of the one before had not ended."""
    for before, job in _ticks(evidence, "skipping"):
        yield f"{said(job)} began before the end of {said(before)}" * (
            not before.ended or job.begun < before.ended
        )


SCENARIO = Scenario(
    "cron",
    {"cron": {}},
    enqueue,
    {
        "tick missed": missed,
        "tick early": early,
        "tick twice": twice,
        "ticks overlap": overlap,
    },
    rate=0.1,
    prepare=prepare,
    finish=finish,
)
