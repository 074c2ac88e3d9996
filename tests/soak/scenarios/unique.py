"""Unique jobs: of a key one lives at a time."""

from __future__ import annotations

from collections.abc import Iterator

from rqueue.tasks.options import Options
from rqueue.tasks.unique import Unique
from tests.soak.cases import alike, at_once, said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

KEYS = 3


def enqueue(publisher: Publisher) -> None:
    """A job of a key. Where another one lives, the answer names that, and nothing is stored."""
    key = f"{publisher.name}/{publisher.random.randrange(KEYS)}"
    number = publisher.sent("unique", key=key)
    options = Options(id=publisher.id(number), unique=Unique(key=key))
    arguments = (publisher.name, number, publisher.random.choice((0.0, 0.05, 0.3)), "")
    queue = publisher.queue("unique")
    for _ in range(3):
        try:
            handle = queue.send("soak.step", arguments, None, options)
        except Exception as error:
            if publisher.failed([number], error):
                continue
            return
        if handle.id == publisher.id(number):
            publisher.say("accepted", number)
        else:
            publisher.say("conflict", number, other=handle.id)
        return


def lived(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job was stored while another one of its key had not run to its end."""
    for key, jobs in alike(SCENARIO.jobs(evidence), lambda job: str(job.facts["key"])).items():
        before = None
        for job in jobs:
            if not job.accepted:
                continue
            if before is not None:
                both = not before.ended or before.ended > job.answered
                yield f"{key}: {said(job)} stored while {said(before)} lived" * both
            before = job


def ran(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job began although the answer was that another one has its key."""
    for record in evidence.records["conflict"]:
        job = evidence.jobs[record["publisher"], record["number"]]
        yield f"{said(job)}: {record['other']} had its key" * bool(job.begins)


SCENARIO = Scenario(
    "unique",
    {"unique": {"kind": "unique"}},
    enqueue,
    {
        "two of a key alive": lived,
        "two of a key at once": at_once("unique", 1, lambda job: job.facts["key"]),
        "refused and yet begun": ran,
    },
    rate=4,
)
