"""Tasks that say in a Redis list that they begin, for each executor."""

import os
import time

import redis

from rqueue.tasks.context import current_job
from rqueue.tasks.decorator import task
from tests.workers.supervisor_app import hold

__all__ = ["hold"]


def _say(key: str, text: str) -> None:
    with redis.Redis.from_url(os.environ["TEST_URL"]) as client:
        client.rpush(key, text)


@task(name="sync")
def sync(key: str, text: str) -> str:
    """Say it."""
    _say(key, text)
    return text


@task(name="early", ack="early")
def early(key: str, text: str) -> None:
    """Say it, acked before."""
    _say(key, text)


@task(name="steps")
def steps(key: str, text: str) -> None:
    """Say it in a step, which is kept."""
    job = current_job()
    assert job is not None
    job.step("say", _say, key, text)


@task(name="loop")
async def loop(key: str, text: str) -> str:
    """Say it."""
    _say(key, text)
    return text


@task(name="long")
def long(seconds: float) -> None:
    """Teach the worker that jobs take long: then it keeps what waits behind one."""
    time.sleep(seconds)


@task(name="long_loop")
async def long_loop(seconds: float) -> None:
    """As `long`; the loop waits with it."""
    time.sleep(seconds)


@task(name="hold_loop")
async def hold_loop(key: str) -> None:
    """As `hold`; the loop waits with it."""
    hold.function(key)
