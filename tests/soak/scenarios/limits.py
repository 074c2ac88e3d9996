"""At most three jobs at once, and one of each tenant, also while the limit changes."""

from __future__ import annotations

from contextlib import suppress

from rqueue.errors import RQueueError
from rqueue.model.job_limit import JobLimit
from rqueue.tasks.options import Options
from tests.soak.cases import at_once
from tests.soak.field import Field
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

MOST = 3
TENANTS = 4


def enqueue(publisher: Publisher) -> None:
    """A job of a tenant; now and then fewer may run."""
    tenant = f"tenant {publisher.random.randrange(TENANTS)}"
    limits = [JobLimit("database", MOST), JobLimit("tenant", 1, tenant)]
    publisher.send("limits", Options(limit=limits), tenant=tenant)
    if publisher.random.random() < 0.1:
        with suppress(RQueueError):  # it stays as it is
            publisher.queue("limits").limits.set("database", publisher.random.randint(1, MOST))


def finish(field: Field) -> None:
    """As many as the jobs say."""
    with field.queue("limits") as queue:
        queue.limits.reset("database")


SCENARIO = Scenario(
    "limits",
    {"limits": {}},
    enqueue,
    {
        "more at once than the limit": at_once("limits", MOST, lambda job: "database"),
        "two of a key at once": at_once("limits", 1, lambda job: job.facts["tenant"]),
    },
    rate=4,
    finish=finish,
)
