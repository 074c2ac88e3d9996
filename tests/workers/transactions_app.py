"""Jobs that are followed by others: in the main thread, in threads, on an event loop."""

import os
import signal
from typing import Any

import redis

from rqueue.tasks.context import JobContext, current_job
from rqueue.tasks.control import Retry
from rqueue.tasks.decorator import task

_client: dict[int, redis.Redis] = {}


def _server() -> redis.Redis:
    if os.getpid() not in _client:
        _client[os.getpid()] = redis.Redis.from_url(os.environ["TEST_URL"])
    return _client[os.getpid()]


def _job() -> JobContext:
    job = current_job()
    assert job is not None
    return job


def _link(follow: Any, key: str, chain: int, left: int, how: str) -> int:
    """Followed by the next link. how: what becomes of it the first time, after that was said."""
    with _job().transaction() as tx:
        if left:
            tx.enqueue(follow, key, chain, left - 1, how)
    server = _server()
    server.rpush(key, f"{chain} {left}")
    first = how and left % 5 == 2 and server.hsetnx(f"{key}:tried", f"{chain} {left}", "1")
    if first and how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if first and how == "retried":
        raise Retry(after=0.01)
    return left


@task(name="link")
def link(key: str, chain: int, left: int, how: str) -> int:
    return _link(link, key, chain, left, how)


@task(name="alink")
async def alink(key: str, chain: int, left: int, how: str) -> int:
    return _link(alink, key, chain, left, how)


@task(name="quiet")
def quiet(ids: str) -> None:
    """Followed by two jobs; the ids of both are noted."""
    job = _job()
    with job.transaction() as tx:
        first = tx.send("link", [ids, 0, 0, ""])
    try:
        with job.transaction() as tx:
            tx.send("link", [ids, 1, 0, ""])
            raise LookupError
    except LookupError:
        pass  # nothing of that one
    with job.transaction() as tx:
        second = tx.enqueue(link, ids, 2, 0, "")
    _server().rpush(f"{ids}:said", first, second)


@task(name="fails")
def fails(key: str) -> None:
    with _job().transaction() as tx:
        tx.send("link", [key, 0, 0, ""])
    raise ValueError


@task(name="refused", max_deliveries=1)
def refused() -> None:
    """What is to follow has a key, in a queue of groups."""
    from rqueue.tasks.options import Options

    with _job().transaction() as tx:
        tx.send("link", ["", 0, 0, ""], None, Options(key="k"))


@task(name="hop")
def hop(key: str, here: str, there: str, left: int) -> None:
    """Followed by the next one in the other queue."""
    with _job().transaction() as tx:
        if left:
            tx.at(there).send("hop", [key, there, here, left - 1])
    _server().rpush(key, left)
