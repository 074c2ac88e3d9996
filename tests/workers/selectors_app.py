"""A job that tells which pool ran it."""

import os

import redis

from rqueue.tasks.decorator import task


@task(name="note_version")
def note_version(key: str, number: int, version: int) -> None:
    """Note the number and version of the job, and the version of this pool."""
    with redis.Redis.from_url(os.environ["TEST_URL"]) as server:
        server.rpush(key, f"{number} {version} {os.environ['RUNS_VERSION']}")
