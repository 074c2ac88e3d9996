"""Transactions of clients and of jobs: all of it, or nothing, and once."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rqueue import current_job, task
from rqueue.tasks.options import Options
from tests.soak.cases import alike, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence, Job
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario
from tests.soak.tasks import AGAIN, Wanted, note, recorder

HERE, THERE = "transactions", "transactions_other"
FOLLOWERS = 2


@task(name="soak.parent", queue=HERE, retry=AGAIN)
def parent(publisher: str, number: int, how: str = "") -> None:
    """Two jobs that follow, one of them in another queue; the first attempt may fail then."""
    job = current_job()
    assert job is not None
    note("begin", publisher, number)
    attempt = f"{publisher}-{number}.{os.getpid()}.{job.delivery}.{job.attempts}"
    with job.transaction() as tx:
        for place in range(FOLLOWERS):
            id_ = f"{attempt}-{place}"
            facts = {"parent": [publisher, number], "tx": attempt, "scenario": "transactions"}
            recorder().write(
                "sent", publisher=attempt, number=place, id=id_, queue=(HERE, THERE)[place], **facts
            )
            to = tx.at(THERE) if place else tx
            to.send("soak.step", (attempt, place, 0.0, ""), None, Options(id=id_))
    if how == "fail" and job.attempts == 0:
        note("fail", publisher, number)
        raise Wanted
    note("end", publisher, number)


def enqueue(publisher: Publisher) -> None:
    """A job that has followers, or three in one transaction."""
    queue = publisher.queue(HERE)
    if publisher.random.random() < 0.5:
        how = "fail" if publisher.random.random() < 0.3 else ""
        number = publisher.sent(HERE, how=how, followed=True)
        arguments = (publisher.name, number, how)
        its = Options(id=publisher.id(number))
        publisher.attempt([number], lambda: queue.send("soak.parent", arguments, None, its))
        return
    name = f"{publisher.name}/{publisher.number()}"
    numbers = [publisher.sent(where, tx=name) for where in (HERE, HERE, THERE)]

    def commit() -> bool:
        with queue.transaction() as tx:
            for number in numbers:
                to = tx.at(publisher.queue(THERE)) if number == numbers[-1] else tx
                arguments = (publisher.name, number, 0.0, "")
                to.send("soak.step", arguments, None, Options(id=publisher.id(number)))
        return True

    publisher.attempt(numbers, commit)


def _there(job: Job) -> bool:
    return bool(job.begins or job.finals)


def torn(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Some jobs of a transaction are there, and others are not."""
    for name, jobs in alike(
        SCENARIO.jobs(evidence), lambda job: str(job.facts.get("tx", ""))
    ).items():
        there = [job.id for job in jobs if _there(job)]
        yield f"{name}: only {there}" if 0 < len(there) < len(jobs) else ""


def followers(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job that is done has the followers of one attempt."""
    jobs = SCENARIO.jobs(evidence)
    found: dict[tuple[str, int], set[str]] = {}
    for job in jobs:
        if "parent" in job.facts:
            attempts = found.setdefault(tuple(job.facts["parent"]), set())
            attempts.update([job.facts["tx"]] * _there(job))
    for job in jobs:
        if job.facts.get("followed") and job.accepted:
            its = sorted(found.get(job.key, ()))
            yield f"{said(job)}: followed by those of {its}" * (len(its) != 1)


SCENARIO = Scenario(
    "transactions",
    {HERE: {}, THERE: {}},
    enqueue,
    {"a part of a transaction": torn, "not followed once": followers},
    rate=2,
)
