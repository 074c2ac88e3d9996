"""Bare redis-py (with hiredis) on the same server: what a job costs if it is only a list element.

Each returns operations (jobs) a second.
"""

from __future__ import annotations

import time
from typing import Any

import redis

KEY, TAKEN = "floor:list", "floor:taken"


def lpush(client: redis.Redis, payload: bytes, count: int) -> float:
    """A round trip each."""
    client.delete(KEY)
    begin = time.perf_counter()
    for _ in range(count):
        client.lpush(KEY, payload)
    return count / (time.perf_counter() - begin)


def lpush_pipelined(client: redis.Redis, payload: bytes, count: int, batch: int = 250) -> float:
    """Hundreds of commands in one round trip, and one element each."""
    client.delete(KEY)
    begin = time.perf_counter()
    for _ in range(count // batch):
        pipe = client.pipeline(transaction=False)
        for _ in range(batch):
            pipe.lpush(KEY, payload)
        pipe.execute()
    return count // batch * batch / (time.perf_counter() - begin)


def fill(client: redis.Redis, payload: bytes, count: int) -> None:
    """Distinct elements, as jobs are: LREM has to find the right one."""
    client.delete(KEY, TAKEN)
    for first in range(0, count, 1000):
        elements = [b"%08d" % i + payload for i in range(first, min(first + 1000, count))]
        client.rpush(KEY, *elements)


def take_one(client: redis.Redis, payload: bytes, count: int) -> float:
    """BLMOVE, then LREM, a round trip each: the reliable queue in its simplest form."""
    fill(client, payload, count)
    begin = time.perf_counter()
    for _ in range(count):
        job: Any = client.blmove(KEY, TAKEN, 5, "LEFT", "RIGHT")
        client.lrem(TAKEN, 1, job)
    return count / (time.perf_counter() - begin)


def take_pipelined(client: redis.Redis, payload: bytes, count: int, batch: int = 250) -> float:
    """LMOVE in hundreds, then LREM in hundreds."""
    fill(client, payload, count)
    begin = time.perf_counter()
    done = 0
    while done < count:
        pipe = client.pipeline(transaction=False)
        for _ in range(batch):
            pipe.lmove(KEY, TAKEN, "LEFT", "RIGHT")
        jobs = [job for job in pipe.execute() if job is not None]
        pipe = client.pipeline(transaction=False)
        for job in jobs:
            pipe.lrem(TAKEN, 1, job)
        pipe.execute()
        done += len(jobs)
    return count / (time.perf_counter() - begin)
