"""What several scenarios judge by: who ran at once, and in which order jobs began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Job
from tests.soak.scenario import Rule

Name = Callable[[Job], str]
"""What jobs have in common; "": nothing."""


def said(job: Job) -> str:
    """A job, for people."""
    return f"{job.key[0]}/{job.key[1]} (id {job.id}, queue {job.queue})"


def alike(jobs: Iterable[Job], name: Name) -> dict[str, list[Job]]:
    """Jobs by what they have in common."""
    found: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if its := name(job):
            found[its].append(job)
    return found


def at_once(scenario: str, most: int, name: Name) -> Rule:
    """A rule: of jobs that have something in common at most so many run at once. A run counts if it
    ended, and nothing can have taken the job from its process meanwhile."""

    def rule(evidence: Evidence, causes: Causes) -> Iterator[str]:
        for its, jobs in alike(_of(evidence, scenario), name).items():
            runs = sorted(
                (begin.at, begin.ended, said(job))
                for job in jobs
                for begin in job.begins
                if begin.ended and not causes.of_loss(begin.pid, begin.at, begin.ended)
            )
            running: list[tuple[float, str]] = []
            for since, until, job in runs:
                running = [other for other in running if other[0] > since]
                beside = ", ".join(other for _, other in running)
                yield f"{its}: {job} began beside {beside}" if len(running) >= most else ""
                running.append((until, job))

    return rule


def one_after_another(scenario: str, name: Name) -> Rule:
    """A rule: of jobs that have something in common each one begins when the one before has run to
    its end."""

    def rule(evidence: Evidence, _causes: Causes) -> Iterator[str]:
        for its, jobs in alike(_of(evidence, scenario), name).items():
            for before, job in pairwise([job for job in jobs if job.begins]):
                early = not before.ended or job.begun < before.ended
                yield f"{its}: {said(job)} began before the end of {said(before)}" * early

    return rule


def rounds(scenario: str, evidence: Evidence, causes: Causes) -> Iterator[tuple[str, list[Job]]]:
    """The rounds of a scenario, each as its jobs began. A round counts if all its jobs began in one
    process, no other one can have held any of them, and no reply of Redis was lost."""
    found = alike(_of(evidence, scenario), lambda job: str(job.facts.get("round", "")))
    for its, jobs in found.items():
        if not all(job.accepted and job.begins for job in jobs):
            continue
        jobs = sorted(jobs, key=lambda job: job.begun)
        hit = any(causes.others_held(job.begins[0].pid, job.begun) for job in jobs)
        pids = {job.begins[0].pid for job in jobs}
        since = min(job.at for job in jobs)
        cut = any(causes.cut_off(pid, since, jobs[-1].begun) for pid in pids)
        if len(pids) == 1 and not hit and not cut:
            yield its, jobs


def in_rounds(scenario: str, order: Callable[[Sequence[Job]], list[Job]]) -> Rule:
    """A rule: jobs of a round, all of which waited before one was delivered, begin in an order."""

    def rule(evidence: Evidence, causes: Causes) -> Iterator[str]:
        for its, jobs in rounds(scenario, evidence, causes):
            begun = [job.key[1] for job in jobs]
            right = [job.key[1] for job in order(jobs)]
            yield f"{its}: began as {begun}, not as {right}" if begun != right else ""

    return rule


def never_early(scenario: str) -> Rule:
    """A rule: a delayed job begins when it is due."""

    def rule(evidence: Evidence, _causes: Causes) -> Iterator[str]:
        for job in _of(evidence, scenario):
            if job.delay and job.begins:
                early = job.at + job.delay / 1000 - job.begun
                yield f"{said(job)}: {early:.3f} s too early" if early > CLOCKS_S else ""

    return rule


CLOCKS_S = 0.02
"""How far Redis's clock, in whole milliseconds, and the machine's may be apart."""


def _of(evidence: Evidence, scenario: str) -> list[Job]:
    return [job for job in evidence.jobs.values() if job.scenario == scenario]
