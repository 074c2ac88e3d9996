"""Streams: members that are drawn while they are enqueued, and a callback behind the last one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from rqueue import stream, task
from tests.soak import flows
from tests.soak.cases import alike, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Job
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario
from tests.soak.tasks import AGAIN, note

MEMBERS = 8
DRAW_S = 0.3
"""Seconds between two members: a step of the stream is sent each second."""


@task(name="soak.drawn", queue="streams", retry=AGAIN)
def drawn(publisher: str, number: int) -> None:
    """A member, and the callback."""
    note("begin", publisher, number)
    time.sleep(0.005)
    note("end", publisher, number)


def build(by: str, numbers: Sequence[int]) -> Any:
    """A stream."""
    *members, last = numbers

    def draw() -> Iterator[Any]:
        for number in members:
            time.sleep(DRAW_S)
            yield drawn.s(by, number)

    return stream(draw(), drawn.si(by, last))


def enqueue(publisher: Publisher) -> None:
    """One stream."""
    flows.send(publisher, ["streams"] * (MEMBERS + 1), build)


def _flows(evidence: Evidence) -> Iterator[tuple[str, list[Job], Job]]:
    jobs = SCENARIO.jobs(evidence)
    for flow, (*members, last) in alike(jobs, lambda job: str(job.facts["flow"])).items():
        yield flow, members, last


def early(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """The callback began before all members had ended."""
    for flow, members, last in _flows(evidence):
        if last.begins:
            open_ = [said(job) for job in members if not job.ended or job.ended > last.begun]
            yield f"{flow}: before the end of {open_}" * bool(open_)


def whole(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A stream that was sealed is not done."""
    for flow, members, last in _flows(evidence):
        if last.accepted:
            left = [said(job) for job in (*members, last) if not job.done]
            yield f"{flow}: not done are {left}" * bool(left)


SCENARIO = Scenario(
    "streams",
    {"streams": {}},
    enqueue,
    {"sealed too early": early, "not complete": whole},
    rate=0.2,
    may=("cancelled",),
    resume=partial(flows.resume, build=build),
)
