"""Tasks whose jobs do what their arguments say, for a real pool and for the test kit alike."""

import asyncio
from datetime import date, timedelta
from typing import Any

from rqueue.tasks import context
from rqueue.tasks.control import Reject, Retry, Snooze
from rqueue.tasks.decorator import task
from rqueue.tasks.limits import Concurrency, Rate
from rqueue.tasks.retry import RetryPolicy
from rqueue.tasks.unique import Unique

POLICY = RetryPolicy(max_deliveries=3, delay=0.05, jitter=0, give_up_on=[LookupError])


def act(plan: list[str]) -> list[Any]:
    """Do what the plan says for this attempt; the last word counts for all later ones. A pool
    delivers a job more often than it runs it, so deliveries say nothing."""
    job = context.current_job()
    assert job is not None
    what = plan[min(job.attempts, len(plan) - 1)]
    if what == "raise":
        raise ValueError(f"attempt {job.attempts}")
    if what == "give up":
        raise LookupError("for good")
    if what == "type error":
        raise TypeError("its own")
    if what == "retry":
        raise Retry(0.05, "later")
    if what == "reject":
        raise Reject("never")
    if what == "snooze" and job.step("began", lambda: job.acquired_ms) + 50 > job.acquired_ms:
        raise Snooze(0.06, "soon")
    if what == "bytes":
        return [b"no JSON"]
    if what == "bad step":
        job.step("s", lambda: b"no JSON")
    if what == "step":
        job.step("s", lambda: {"tuple": (1, date(2030, 1, 31))})
    return [what, job.attempts]


@task(name="plain", queue="alike-plain", retry=POLICY)
def plain(plan: list[str]) -> list[Any]:
    return act(plan)


@task(name="waits", queue="alike-plain", retry=POLICY)
async def waits(plan: list[str]) -> list[Any]:
    await asyncio.sleep(0)
    return act(plan)


@task(name="typed", queue="alike-plain", retry=POLICY)
def typed(plan: list[str], day: date, *rest: timedelta, **more: set[date]) -> list[Any]:
    return [*act(plan), day.year, [one.days for one in rest], sorted(more)]


@task(name="early", queue="alike-plain", retry=POLICY, ack="early")
def early(plan: list[str]) -> list[Any]:
    return act(plan)


@task(name="grouped", queue="alike-groups", retry=POLICY)
def grouped(plan: list[str]) -> list[Any]:
    return act(plan)


@task(name="unique", queue="alike-unique", retry=POLICY, unique=Unique("key"))
def unique(plan: list[str], key: int) -> list[Any]:
    return act(plan)


@task(name="rated", queue="alike-rate", retry=POLICY, limit=Rate(20, per="1s", burst=1))
def rated(plan: list[str]) -> list[Any]:
    return act(plan)


@task(name="limited", queue="alike-limit", retry=POLICY, limit=Concurrency(1))
def limited(plan: list[str]) -> list[Any]:
    return act(plan)


@task(name="first", queue="alike-flows", retry=POLICY)
def first(plan: list[str]) -> list[Any]:
    return act(plan)


@task(name="then", queue="alike-flows", retry=POLICY)
def then(before: Any, plan: list[str]) -> list[Any]:
    failed = [one for one in before if isinstance(one, tuple)] if isinstance(before, list) else []
    return [act(plan), len(before), [one._asdict()["state"] for one in failed]]
