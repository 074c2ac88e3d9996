"""An application with hooks of all kinds; what they see they say in the list that `SAY` names."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import redis

from rqueue.tasks.app import App
from rqueue.tasks.context import JobContext, current_job
from rqueue.tasks.control import Reject, Retry, Snooze
from rqueue.tasks.decorator import task
from rqueue.tasks.depends import Depends
from rqueue.tasks.middleware import Middleware, WorkerInfo
from rqueue.tasks.retry import RetryPolicy

client = redis.Redis.from_url(os.environ["CHILD_TEST_URL"])
tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


def say(text: str) -> None:
    client.rpush(os.environ["SAY"], text)


class Pool:
    """What a lifespan opens."""

    def __init__(self) -> None:
        self.open = True


class Session:
    """What a dependency makes for each job."""


@contextmanager
def lifespan(worker: WorkerInfo) -> Iterator[Pool]:
    say(f"open {','.join(worker.queues)}")
    pool = Pool()
    yield pool
    pool.open = False
    say("closed")


@asynccontextmanager
async def beside(worker: WorkerInfo) -> AsyncIterator[None]:
    say("beside")
    yield
    say("beside ends")


class Outer(Middleware):
    def around_job(self, job: JobContext, call: Callable[[], Any]) -> Any:
        if not job.task.startswith("h.layers"):
            return call()
        say(f"outer {job.id} {job.delivery}")
        try:
            return f"<{call()}>"
        except (Retry, Snooze, Reject) as control:
            say(f"outer saw {type(control).__name__}")
            raise

    async def around_async_job(self, job: JobContext, call: Callable[[], Awaitable[Any]]) -> Any:
        if not job.task.startswith("h.layers"):
            return await call()
        say("async outer")
        return f"<{await call()}>"

    async def startup(self, worker: WorkerInfo) -> None:
        say("startup")

    def shutdown(self, worker: WorkerInfo) -> None:
        say("shutdown")


class Inner(Middleware):
    @contextmanager
    def job_scope(self, job: JobContext) -> Iterator[None]:
        if job.task.startswith("h.layers"):
            say("inner begins")
        yield
        if job.task.startswith("h.layers"):
            say("inner ends")

    def on_retry(self, job: JobContext, error: BaseException, delay: float) -> None:
        say(f"retry {job.id} of {job.headers} in {delay:g}: {error!r}")
        raise RuntimeError("of the hook")

    def on_dead(self, job: JobContext, error: BaseException) -> None:
        say(f"dead {job.id}: {type(error).__name__}")
        raise SystemExit(3)


app = App(middleware=[Outer()], context=[tenant], lifespan=lifespan)
more = App(middleware=[Inner()], lifespan=beside)


@task(name="h.layers", retry=RetryPolicy(max_deliveries=2, delay=0.01, jitter=0))
def layers(what: str = "") -> str:
    say(f"job {tenant.get()}")
    tenant.set("left behind")
    if what == "retry":
        raise Retry()
    if what == "snooze":
        job = current_job()
        assert job is not None
        if job.delivery == 1:
            raise Snooze(0)
    if what == "reject":
        raise Reject("no")
    if what == "fail":
        raise ValueError("no")
    return "done"


@task(name="h.layers.async")
async def alayers() -> str:
    say(f"async job {tenant.get()}")
    tenant.set("left behind")
    return "done"


def session(job: JobContext, pool: Annotated[Pool, Depends()]) -> Iterator[Session]:
    assert pool.open
    say(f"begin {job.id}")
    try:
        yield Session()
    except ValueError:
        say("rollback")
        raise
    say("commit")
    if job.id.startswith("torn"):
        raise ConnectionError("the commit failed")


def number() -> int:
    """A dependency of the process."""
    say("number")
    return os.getpid()


async def anumber() -> AsyncIterator[int]:
    say("anumber")
    yield os.getpid()
    say("anumber ends")


async def later(one: Annotated[Session, Depends(session)]) -> Session:
    return one


@task(name="h.provided", max_deliveries=1)
def provided(
    what: str,
    *,
    one: Session = Depends(session),
    again: Session = Depends(session),
    pid: int = Depends(number, scope="process"),
    apid: int = Depends(anumber, scope="process"),
) -> list[Any]:
    if what == "fail":
        raise ValueError(what)
    return [what, one is again, pid == apid == os.getpid()]


@task(name="h.provided.async")
async def aprovided(one: Session = Depends(later), again: Session = Depends(session)) -> bool:
    return one is again


class Colour(Enum):
    RED = "red"


@task(name="h.typed", max_deliveries=5)
def typed(
    when: datetime, *ids: UUID, price: Decimal = Decimal(0), colour: Colour | None = None
) -> list[str]:
    return [when.isoformat(), *map(repr, ids), repr(price), repr(colour)]
