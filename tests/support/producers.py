"""Producers of a queue that run beside the test, in threads: the sync client, or an asyncio one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from tests.support.monitor import Monitor, monitoring

KINDS = ("sync", "asyncio")


class Producers:
    """Each call is one producer's: it enqueues jobs and waits as long as it takes."""

    def __init__(self, kind: str, queue: Queue, monitor: Monitor) -> None:
        self._asyncio = kind == "asyncio"
        self._asked = queue
        self._queue = queue.name
        self._url = queue.settings.url
        self._monitor = monitor
        self._blocked: set[str] = set()
        self._threads = ThreadPoolExecutor(50)

    def enqueue(self, id: str, max_wait: float | None = None) -> Future[str]:
        """One job of this id; the future has it."""
        return self._threads.submit(self._enqueue, [id], max_wait)

    def enqueue_many(self, *ids: str, max_wait: float | None = None) -> Future[str]:
        """Several of them, in one call; the future has the last id."""
        return self._threads.submit(self._enqueue, list(ids), max_wait)

    def _enqueue(self, ids: list[str], max_wait: float | None) -> str:
        calls = [Call("t", [], None, Options(id=id, max_wait=max_wait)) for id in ids]
        if self._asyncio:
            return asyncio.run(self._in_loop(calls, max_wait))
        with Queue(self._queue, self._url) as queue:
            if len(calls) == 1:
                return queue.send("t", [], None, calls[0].options or Options()).id
            return queue.enqueue_many(calls, max_wait=max_wait)[-1].id

    async def _in_loop(self, calls: list[Call], max_wait: float | None) -> str:
        async with AsyncQueue(self._queue, self._url) as queue:
            if len(calls) == 1:
                return (await queue.send("t", [], None, calls[0].options or Options())).id
            return (await queue.enqueue_many(calls, max_wait=max_wait))[-1].id

    def wait_blocked(self, times: int = 1) -> None:
        """Until so many more of them have begun to wait for room."""
        while times:
            command = self._monitor.wait_for("blpop ", ":room:")
            producer = command.split(":room:")[1].split()[0]
            # what the server was taught just then comes once more: it knew of nobody before
            known = self._asked.redis.hexists(self._asked.keys.wishes, producer)
            if known and producer not in self._blocked:
                self._blocked.add(producer)
                times -= 1

    def close(self) -> None:
        """All have come to their end."""
        self._threads.shutdown()


@contextmanager
def producing(kind: str, queue: Any) -> Iterator[Producers]:
    """Producers into the queue of a `QueueFixture`."""
    client = queue.queue
    with monitoring(client.settings.url) as monitor:
        producers = Producers(kind, client, monitor)
        try:
            yield producers
        finally:
            producers.close()
