"""Tasks that report how far they are, for the tests of the worker process."""

import logging
import os
import threading

from rqueue.contrib.logs import JobLog
from rqueue.tasks.context import JobContext, current_job
from rqueue.tasks.decorator import task
from tests.workers.child_app import agate, gate, say

late: list[JobContext] = []
logging.getLogger().addHandler(JobLog(logging.WARNING))


def here() -> JobContext:
    job = current_job()
    assert job is not None
    return job


@task(name="c.pages")
def pages(key: str) -> None:
    """Two reports; it waits behind each. The second comes from a thread of the job's own."""
    job = here()
    job.progress(1, 3, "first")
    gate.function(key)
    thread = threading.Thread(target=job.progress, args=(2, 3, "second"))
    thread.start()
    thread.join()
    gate.function(key)
    job.progress(3, 3, "third")


@task(name="c.apages")
async def apages(key: str) -> None:
    job = here()
    job.progress(1, 3, "first")
    await agate.function(key)
    job.progress(2, 3, "second")
    await agate.function(key)
    job.progress(3, 3, "third")


@task(name="c.many_reports")
def many_reports(key: str, count: int) -> None:
    job = here()
    for number in range(count):
        job.progress(number + 1, count)
    gate.function(key)


@task(name="c.comes_so_far", max_deliveries=1)
def comes_so_far() -> None:
    here().progress(30, 100, "rendering")
    raise ValueError("no more paper")


@task(name="c.reports_late")
def reports_late() -> int:
    """Its context is used by the next one: what is said of an attempt that is over is nothing."""
    for job in late:
        job.progress(9, 9, "late")
    count = len(late)
    late.append(here())
    here().progress(count)
    return count


@task(name="c.forks_and_reports")
def forks_and_reports() -> str:
    """What a process that the job forked gets for its report."""
    job = here()
    reading, writing = os.pipe()
    if not os.fork():
        try:
            job.progress(1, 2)
        except BaseException as error:
            os.write(writing, type(error).__name__.encode())
        os._exit(0)
    os.close(writing)
    os.wait()
    return os.read(reading, 100).decode()


@task(name="c.held_and_reported")
def held_and_reported(key: str) -> None:
    here().progress(here().delivery, None, "delivery")
    say(key, "said")
    gate.function(key)


@task(name="c.logs")
def logs(key: str) -> None:
    here().log("page %d of %s", 1, "two")
    logging.getLogger("app").warning("careful")
    logging.getLogger("rqueue.worker").warning("not of the job")
    gate.function(key)
    here().log("last", level=logging.ERROR)


@task(name="c.ends_at_once")
def ends_at_once() -> int:
    here().log("only this")
    return 7


@task(name="c.logs_much", max_deliveries=1)
def logs_much() -> None:
    for number in range(20_000):
        here().log("%d", number)
    raise ValueError("no more paper")
