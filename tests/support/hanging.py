"""Servers of which one hangs while another takes its place, and every kind of call that meets it.

`SIGSTOP` is what a frozen machine looks like: connections stay open, new ones are accepted by the
kernel, and nothing answers.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from rqueue import Call
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE
from tests.support.redis_cluster import SmallCluster
from tests.support.redis_server import Servers
from tests.support.sentinels import BehindSentinels, port_of
from tests.support.vanishing import VanishingPrimary

BIG = "x" * 8_000_000
"""More than the sockets of both sides hold: the command is not even written."""

OWN_S = PATIENCE * 2
"""The time of a call in these tests: none ends by it."""


class Replaceable(Protocol):
    """A primary that another server replaces when it hangs. `queue`: the name of one that is
    there."""

    url: str
    queue: str

    def hung(self) -> AbstractContextManager[None]:
        """It gives no answer inside."""

    def successor(self) -> bool:
        """Whether another one is known to have its place."""


class SentinelPrimary:
    """Behind Sentinels."""

    queue = "q"

    def __init__(self, behind: BehindSentinels) -> None:
        self._behind = behind
        self.url = behind.url
        self.primary = behind.servers[0]

    def hung(self) -> AbstractContextManager[None]:
        return hanging(self.primary)

    def successor(self) -> bool:
        return self._behind.named() not in (None, port_of(self.primary))


class ClusterPrimary:
    """A master of a cluster."""

    def __init__(self, cluster: SmallCluster, like: str = "q") -> None:
        node = cluster.masters()[0]
        self._slot = cluster.slots(node)[0]
        self._others = [one for one in cluster.members if one is not node]
        self._node = node
        self.url = cluster.cluster_url
        self.queue = cluster.queue_on(node, like)
        self.primary = node.server

    def hung(self) -> AbstractContextManager[None]:
        return hanging(self.primary)

    def successor(self) -> bool:
        """All others have heard of it."""
        return all(
            any(self._slot in row.slots for row in one.view() if row.id != self._node.id)
            for one in self._others
        )


@pytest.fixture(
    params=[
        "sentinels",
        "cluster",
        pytest.param(
            "host that vanishes",
            marks=[
                pytest.mark.long,
                pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces take root"),
            ],
        ),
    ]
)
def replaceable(
    request: pytest.FixtureRequest,
    servers: Servers,
    tmp_path: Path,
    make_cluster: Callable[..., SmallCluster],
) -> Iterator[Replaceable]:
    if request.param == "cluster":
        options = {"cluster-require-full-coverage": "no"}
        yield ClusterPrimary(make_cluster(replicas=1, **options))
        return
    if request.param == "host that vanishes":
        away = VanishingPrimary(servers, tmp_path)
        try:
            yield away
        finally:
            away.stop()
        return
    behind = BehindSentinels(servers, tmp_path)
    try:
        yield SentinelPrimary(behind)
    finally:
        behind.stop()


@contextmanager
def hanging(server: EmbeddedRedis) -> Iterator[None]:
    """The server hangs inside."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


class Calls:
    """Calls that were made, each in a thread of its own: how each ended, and when."""

    def __init__(self) -> None:
        self.ended: dict[str, tuple[float, object]] = {}
        self.ready = threading.Semaphore(0)
        """Released by each that waits for the server to hang."""
        self._threads: list[threading.Thread] = []

    def make(self, name: str, call: Callable[[], object]) -> None:
        def run() -> None:
            try:
                found = call()
            except Exception as error:
                found = error
            self.ended[name] = time.monotonic(), found

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def join(self) -> None:
        end = time.monotonic() + OWN_S + PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
            assert not thread.is_alive(), thread.name


def settings(url: str) -> Settings:
    return Settings(url=url, command_timeout=OWN_S)


def sync_calls(queue: Queue) -> dict[str, Callable[[], object]]:
    """One of each kind that a client makes."""

    def transaction() -> object:
        with queue.transaction() as step:
            step.enqueue("t", 1)
        return True

    def put() -> object:
        with queue.putter() as putter:
            return putter.put("t").wait_stored(OWN_S)

    return {
        "send": lambda: queue.send("t", options=Options(id="sent")),
        "big": lambda: queue.send("t", [BIG], options=Options(id="big")),
        "many": lambda: queue.enqueue_many([Call("t", [n]) for n in range(600)]),
        "transaction": transaction,
        "put": put,
        "counts": queue.counts,
        "state": queue.job("known").state,
        "cancel": queue.job("cancelled").cancel,
        "configure": lambda: queue.configure(keep="1h"),
        "result": lambda: queue.job("known").result(OWN_S),
    }


def async_calls(queue: AsyncQueue) -> dict[str, Callable[[], Awaitable[object]]]:
    """The same for asyncio."""

    async def put() -> object:
        async with queue.putter() as putter:
            return await (await putter.put("t")).wait_stored(OWN_S)

    return {
        "send": lambda: queue.send("t", options=Options(id="a-sent")),
        "big": lambda: queue.send("t", [BIG], options=Options(id="a-big")),
        "many": lambda: queue.enqueue_many([Call("t", [n]) for n in range(600)]),
        "put": put,
        "counts": queue.counts,
        "state": queue.job("known").state,
        "cancel": queue.job("a-cancelled").cancel,
        "configure": lambda: queue.configure(keep="1h"),
        "result": lambda: queue.job("known").result(OWN_S),
    }


async def all_async(url: str, name: str, calls: Calls, frozen: threading.Event) -> None:
    """All of them at once, in this thread's loop, once the server hangs."""
    async with AsyncQueue(name, settings=settings(url)) as queue:
        await queue.counts()
        calls.ready.release()
        await asyncio.to_thread(frozen.wait)

        async def one(kind: str, call: Callable[[], Awaitable[object]]) -> None:
            found: object
            try:
                found = await call()
            except Exception as error:
                found = error
            calls.ended[f"async {kind}"] = time.monotonic(), found

        await asyncio.gather(*(one(*item) for item in async_calls(queue).items()))
