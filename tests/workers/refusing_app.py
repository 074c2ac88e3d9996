"""A task that one process of a pool refuses."""

import os

import redis

from rqueue.tasks.control import Refuse
from rqueue.tasks.decorator import task


@task(name="elsewhere")
def elsewhere(key: str) -> int:
    """The first process that runs one of these refuses it, and all others; the pid of who does
    it."""
    with redis.Redis.from_url(os.environ["TEST_URL"]) as server:
        server.rpush(f"{key}-runs", os.getpid())
        server.setnx(key, os.getpid())
        if server.get(key) == str(os.getpid()).encode():
            raise Refuse("not in this process")
    return os.getpid()
