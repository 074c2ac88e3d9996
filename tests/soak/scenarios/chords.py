"""Chords, in one queue and through two: the callback begins once, with all results in order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from rqueue import chord, current_job, task
from tests.soak import flows
from tests.soak.cases import alike, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Job
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario
from tests.soak.tasks import AGAIN, Wanted, note

MEMBERS = 4


@task(name="soak.member", queue="chords_members", retry=AGAIN)
def member(publisher: str, number: int) -> int:
    """A member; one in seven fails once."""
    job = current_job()
    assert job is not None
    note("begin", publisher, number)
    time.sleep(0.005)
    if not number % 7 and job.attempts == 0:
        note("fail", publisher, number)
        raise Wanted
    note("end", publisher, number)
    return number


@task(name="soak.total", queue="chords", retry=AGAIN)
def total(results: list[int], publisher: str, number: int) -> None:
    """The callback."""
    note("begin", publisher, number, results=results)
    note("end", publisher, number)


def build(by: str, numbers: Sequence[int]) -> Any:
    """A chord."""
    *members, last = numbers
    return chord([member.s(by, number) for number in members], total.s(by, last))


def enqueue(publisher: Publisher) -> None:
    """A chord, through two queues or in one."""
    spread = publisher.random.random() < 0.5
    members = "chords_members" if spread else "chords"
    flows.send(publisher, [*[members] * MEMBERS, "chords"], build, spread)


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


def results(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """The callback got other results than its members returned, or in another order."""
    for flow, members, last in _flows(evidence):
        right = [job.key[1] for job in members]
        for begin in last.begins:
            got = begin.facts["results"]
            yield f"{flow}: got {got}, not {right}" * (got != right)


def once(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """The members of an accepted chord have ended, and its callback has not ended once."""
    for flow, members, last in _flows(evidence):
        if last.accepted and all(job.done for job in members):
            ends = [row["outcome"] for row in last.finals]
            yield f"{flow}: the callback ended as {ends}" * (ends != ["ack"])


SCENARIO = Scenario(
    "chords",
    {"chords": {}, "chords_members": {}},
    enqueue,
    {"fired too early": early, "other results": results, "not fired once": once},
    rate=1,
    may=("cancelled",),
    resume=partial(flows.resume, build=build),
)
