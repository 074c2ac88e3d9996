"""A job that takes its process with it, and others that run beside it; each says what it saw."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import redis

from rqueue.tasks.context import current_job
from rqueue.tasks.decorator import task

_running: dict[str, int] = {}
"""What runs in this process: id -> crashes of its job before this attempt."""
_changed = threading.Condition()

WAIT_S = 15
"""Seconds that a job waits for the others at most."""

ALONE_S = 0.2
"""Seconds for one that crashed: it runs alone, so where it comes before the poison, which of two
processes may let happen, the poison waits for its end."""


@contextmanager
def _seen(key: str) -> Iterator[redis.Redis]:
    """Say what runs beside this job when it begins."""
    job = current_job()
    with redis.Redis.from_url(os.environ["TEST_URL"], socket_timeout=None) as client:
        with _changed:
            beside = list(_running.items())
            _running[job.id] = job.crashes
            _changed.notify_all()
        said = {"id": job.id, "crashes": job.crashes, "beside": beside, "pid": os.getpid()}
        client.rpush(f"{key}:begun", json.dumps(said))
        try:
            yield client
        finally:
            with _changed:
                del _running[job.id]


def _die(key: str, beside: int) -> None:
    """The first time when so many run beside it; later at once, and the others may end."""
    with _seen(key) as client:
        if current_job().crashes:
            client.rpush(f"{key}:go", "go")
        else:
            with _changed:
                _changed.wait_for(lambda: len(_running) > beside, WAIT_S)
        os._exit(3)


@task(name="die_beside")
def die_beside(key: str, beside: int) -> None:
    """End the process."""
    _die(key, beside)


@task(name="die_beside_on_loop")
async def die_beside_on_loop(key: str, beside: int) -> None:
    """The same of a loop, where the others need its turns to begin."""
    while not current_job().crashes and len(_running) < beside:
        await asyncio.sleep(0)
    _die(key, 0)


def _patience() -> float:
    """How long the job that runs waits for the poison's end."""
    return ALONE_S if current_job().crashes else WAIT_S


@task(name="beside")
def beside(key: str) -> None:
    """End when the poison has been alone."""
    with _seen(key) as client:
        client.blmove(f"{key}:go", f"{key}:go", _patience())


@task(name="beside_on_loop")
async def beside_on_loop(key: str) -> None:
    """The same."""
    until = monotonic() + _patience()
    with _seen(key) as client:
        while not client.exists(f"{key}:go") and monotonic() < until:
            await asyncio.sleep(0.01)


@task(name="quick")
def quick(key: str) -> None:
    """Say what is seen."""
    with _seen(key):
        pass


@task(name="here")
def here() -> None:
    """Do nothing at all."""


@task(name="die_at_once")
def die_at_once() -> None:
    """End the process before anybody else in it has a turn."""
    os._exit(3)
