"""The app of pools in `tests.support.runners`: each job writes down that it began."""

import os
from functools import cache

import redis

from rqueue.tasks.context import current_job
from rqueue.tasks.decorator import task


@cache
def _server(_pid: int) -> redis.Redis:
    return redis.Redis.from_url(os.environ["TEST_URL"])


@task(name="t")
def note(*_args: object) -> None:
    """What tests enqueue."""
    job = current_job()
    assert job is not None
    _server(os.getpid()).rpush(f"begun:{job.queue}", job.id)
