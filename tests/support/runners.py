"""Everything that can run a queue's jobs one after the other, behind one face.

A scenario that takes the fixture `runner` plays with a consumer of one's own, with an asyncio one,
and with a real pool of one process and one slot.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Protocol

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool


class Runner(Protocol):
    """Runs the jobs `t` of one queue, one at a time."""

    def start(self) -> None:
        """Begin; it waits for jobs from then on."""
        ...

    def begun(self, count: int) -> list[str]:
        """Wait until so many jobs have begun: their ids, in the order of beginning."""
        ...

    def stop(self) -> None:
        """End."""
        ...


class Own:
    """A consumer of one's own, in a thread."""

    def __init__(self, url: str, queue: str, jobs: int = 10) -> None:
        self._url = url
        self._queue = queue
        self._jobs = jobs
        self._ids: list[str] = []
        self._news = threading.Condition()
        self._waits = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Begin; returns when it has joined."""
        self._thread.start()
        assert self._waits.wait(PATIENCE)

    def _run(self) -> None:
        with (
            Queue(self._queue, self._url) as queue,
            queue.consumer(jobs=self._jobs, renew=False) as consumer,
        ):
            self._waits.set()
            while not self._stopping.is_set():
                if job := consumer.receive(0.05):
                    self._begin(job.id)
                    consumer.ack(job)

    def _begin(self, id: str) -> None:
        with self._news:
            self._ids.append(id)
            self._news.notify_all()

    def begun(self, count: int) -> list[str]:
        """Ids in the order of beginning."""
        with self._news:
            there = self._news.wait_for(lambda: len(self._ids) >= count, PATIENCE)
            assert there, f"{len(self._ids)} of {count} jobs began: {self._ids[:20]}"
            return list(self._ids)

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)


class OwnAsync(Own):
    """A consumer of one's own, on an event loop."""

    def _run(self) -> None:
        asyncio.run(self._arun())

    async def _arun(self) -> None:
        async with (
            AsyncQueue(self._queue, self._url) as queue,
            queue.consumer(jobs=self._jobs, renew=False) as consumer,
        ):
            self._waits.set()
            while not self._stopping.is_set():
                if job := await consumer.receive(0.05):
                    self._begin(job.id)
                    await consumer.ack(job)


class PoolOfOne:
    """A real pool: a supervisor, one process, one slot."""

    def __init__(self, url: str, queue: str, log: Path) -> None:
        self._url = url
        self._name = queue
        self._log = log
        self._pool: Pool | None = None

    def start(self) -> None:
        """Begin; returns when its worker waits."""
        app = ["tests.support.begun_app"]
        self._pool = Pool(self._url, self._log, app=app, queues=[self._name], async_slots=0)
        with Queue(self._name, self._url) as queue:
            self._until(lambda: len(queue.redis.zrange(queue.keys.consumers, 0, -1)) == 1)

    def begun(self, count: int) -> list[str]:
        """Ids in the order of beginning."""
        with Queue(self._name, self._url) as queue:
            key = f"begun:{self._name}"
            self._until(lambda: queue.redis.llen(key) >= count)
            return [id.decode() for id in queue.redis.lrange(key, 0, -1)]

    def _until(self, there: Callable[[], bool]) -> None:
        until, pause = monotonic() + PATIENCE, threading.Event()
        while not there():
            assert monotonic() < until, self._pool and self._pool.log
            pause.wait(0.01)

    def stop(self) -> None:
        """End it in order."""
        if self._pool is not None:
            assert self._pool.drained() == 0, self._pool.log
        with Queue(self._name, self._url) as queue:
            queue.redis.delete(f"begun:{self._name}")


def make_runner(kind: str, url: str, queue: str, directory: Path) -> Runner:
    """kind: consumer, asyncio or pool."""
    if kind == "pool":
        return PoolOfOne(url, queue, directory / "pool.log")
    return OwnAsync(url, queue) if kind == "asyncio" else Own(url, queue)


KINDS = ("consumer", "asyncio", "pool")
