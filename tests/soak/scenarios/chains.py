"""Chains: each call begins when the one before has ended, with its result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from rqueue import chain, current_job, task
from tests.soak import flows
from tests.soak.cases import alike, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Job
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario
from tests.soak.tasks import AGAIN, Wanted, note

LINKS = 3


@task(name="soak.link", queue="chains", retry=AGAIN)
def link(before: list[int], publisher: str, number: int, how: str = "") -> list[int]:
    """One link: what those before returned, and its own number."""
    job = current_job()
    assert job is not None
    note("begin", publisher, number, before=before)
    time.sleep(0.005)
    if how == "fail" and job.attempts == 0:
        note("fail", publisher, number)
        raise Wanted
    note("end", publisher, number)
    return [*before, number]


def build(by: str, numbers: Sequence[int]) -> Any:
    """A chain; one link in seven fails once."""
    hows = ["" if number % 7 else "fail" for number in numbers]
    first, *others = zip(numbers, hows, strict=True)
    return chain(link.s([], by, *first), *(link.s(by, *other) for other in others))


def enqueue(publisher: Publisher) -> None:
    """One chain."""
    flows.send(publisher, ["chains"] * LINKS, build)


def _flows(evidence: Evidence) -> Iterator[tuple[str, list[Job]]]:
    jobs = SCENARIO.jobs(evidence)
    yield from alike(jobs, lambda job: str(job.facts["flow"])).items()


def order(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A link began before the one before had ended."""
    for flow, jobs in _flows(evidence):
        for before, job in pairwise(jobs):
            early = job.begins and (not before.ended or job.begun < before.ended)
            yield f"{flow}: {said(job)} began before the end of {said(before)}" * bool(early)


def results(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A link got other results than those before it returned."""
    for flow, jobs in _flows(evidence):
        for place, job in enumerate(jobs):
            right = [before.key[1] for before in jobs[:place]]
            for begin in job.begins:
                got = begin.facts["before"]
                yield f"{flow}: {said(job)} got {got}, not {right}" * (got != right)


def whole(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Some links of a chain are done, and others are not."""
    for flow, jobs in _flows(evidence):
        done = [job.done for job in jobs]
        yield f"{flow}: done are {done}" * (any(done) and not all(done))


SCENARIO = Scenario(
    "chains",
    {"chains": {}},
    enqueue,
    {"out of order": order, "other results": results, "torn": whole},
    rate=1,
    may=("cancelled",),
    resume=partial(flows.resume, build=build),
)
