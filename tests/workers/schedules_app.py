"""Periodic jobs: each tells its tick."""

import os

import redis

from rqueue.model.tick import Tick
from rqueue.tasks.decorator import task

_client: dict[int, redis.Redis] = {}

QUEUE = os.environ.get("TEST_QUEUE", "default")


@task(name="tell")
def tell(key: str, tick: Tick | None = None) -> None:
    """Tell the second of the tick."""
    if os.getpid() not in _client:
        _client[os.getpid()] = redis.Redis.from_url(os.environ["TEST_URL"])
    _client[os.getpid()].rpush(key, round(tick.at.timestamp()) if tick else -1)


@task(name="beat", queue=QUEUE, cron="* * * * * *")
def beat(tick: Tick | None = None) -> None:
    """As `tell`, declared by the code."""
    tell(f"{QUEUE}:beats", tick)
