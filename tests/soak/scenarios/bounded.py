"""Bounded queues: never more jobs than the limit, whether producers are refused or wait."""

from __future__ import annotations

from collections.abc import Iterator

from rqueue.errors import RQueueError
from rqueue.tasks.options import Options
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

MOST = 8
QUEUES = ("bounded_reject", "bounded_block")


def enqueue(publisher: Publisher) -> None:
    """As many jobs as fit, and some more; then a look."""
    name = publisher.random.choice(QUEUES)
    for _ in range(publisher.random.randrange(2 * MOST)):
        publisher.send(name, Options(max_wait=0.2))
    try:
        counts = publisher.queue(name).counts()
    except RQueueError:
        return
    jobs = counts.ready + counts.scheduled + counts.held
    publisher.record("looked at bounded", queue=name, jobs=jobs)


def judge(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """At no look there are more jobs than the limit; those that are held count too, so that what
    comes back was there all the time."""
    for record in evidence.records["looked at bounded"]:
        yield f"{record['queue']}: {record['jobs']} of {MOST} jobs" * (record["jobs"] > MOST)


SCENARIO = Scenario(
    "bounded",
    {
        "bounded_reject": {"max_jobs": MOST, "count_held": True},
        "bounded_block": {"max_jobs": MOST, "count_held": True, "overflow": "block"},
    },
    enqueue,
    {"more than the limit": judge},
    rate=0.5,
)
