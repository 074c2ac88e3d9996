"""A primary that hangs: no call stays with it once another server has its place."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisTimeout, RedisUnavailable
from rqueue.inspector import Inspector
from rqueue.model.job import JobState
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.transport.wake_listener import LISTEN_S
from tests.support.hanging import (
    OWN_S,
    Calls,
    Replaceable,
    all_async,
    hanging,
    replaceable,  # noqa: F401
    settings,
    sync_calls,
)
from tests.support.patience import PATIENCE, until

AFTER_S = 2.0
"""Seconds after a successor is known until each call is done there, if the machine is free."""


def test_every_call_leaves_for_the_successor(replaceable: Replaceable) -> None:  # noqa: F811
    """Calls of clients that are connected, of fresh ones, and waits that are under way. What the
    old primary does with what lies in its sockets, when it goes on, counts for nothing."""
    url, name = replaceable.url, replaceable.queue
    calls, frozen = Calls(), threading.Event()
    with (
        Queue(name, settings=settings(url)) as queue,
        Queue(name, settings=settings(url)) as fresh,
        Inspector(settings=settings(url)) as inspector,
    ):
        begun = time.monotonic()
        for id_ in ("known", "cancelled", "a-cancelled"):
            queue.send("t", options=Options(id=id_, replicas=1))
        inspector.survey(name)
        kinds = {**sync_calls(queue), "survey": lambda: inspector.survey(name)}

        def connected(call: Callable[[], object]) -> object:
            queue.job("known").state()
            calls.ready.release()
            frozen.wait(PATIENCE)
            return call()

        for kind, call in kinds.items():
            calls.make(kind, lambda call=call: connected(call))  # type: ignore[misc]
        calls.make("async", lambda: asyncio.run(all_async(url, name, calls, frozen)))
        calls.make("wait under way", lambda: queue.job("known").result(PATIENCE * 2))
        for _ in range(len(kinds) + 1):
            assert calls.ready.acquire(timeout=PATIENCE)
        took = time.monotonic() - begun
        with replaceable.hung():
            frozen.set()
            calls.make("fresh", lambda: fresh.send("t", options=Options(id="fresh")))
            until(replaceable.successor, "a successor", PATIENCE)
            known_at = time.monotonic()
            queue.job("known").cancel()
            calls.join()
        after = {name: at - known_at for name, (at, _) in calls.ended.items()}
        assert max(after.values()) < AFTER_S + 10 * took + OWN_S / 10, after
        for name, (_, found) in calls.ended.items():
            assert not isinstance(found, Exception) or "result" in name or "wait" in name, (
                name,
                found,
            )
        for id_ in ("sent", "big", "a-sent", "a-big", "fresh"):
            assert queue.job(id_).state() is JobState.READY
        assert queue.counts().ready == 5 + 2 * 600 + 1 + 2


@pytest.mark.parametrize("connected", [True, False], ids=["connected", "not connected"])
def test_one_server_is_waited_for_no_longer_than_a_call_takes(
    private_server: EmbeddedRedis, connected: bool
) -> None:
    """Nobody takes its place: all tries of a call have the time of one, and a wait its own."""
    limit, url = 3.0, private_server.tcp_url

    async def asyncio_send() -> None:
        async with AsyncQueue("q", settings=Settings(url=url, command_timeout=limit)) as queue:
            if connected:
                await queue.counts()
            calls.ready.release()
            await asyncio.to_thread(frozen.wait)
            await queue.send("t")

    calls, frozen = Calls(), threading.Event()
    with Queue("q", settings=Settings(url=url, command_timeout=limit)) as queue:
        kinds: dict[str, Callable[[], object]] = {
            "send": lambda: queue.send("t"),
            "confirmed": lambda: queue.send("t", options=Options(fsync=True)),
            "counts": queue.counts,
            "result": lambda: queue.job("any").result(1),
        }

        def made(call: Callable[[], object]) -> object:
            if connected:
                queue.counts()
            calls.ready.release()
            frozen.wait(PATIENCE)
            return call()

        for name, call in kinds.items():
            calls.make(name, lambda call=call: made(call))  # type: ignore[misc]
        calls.make("asyncio", lambda: asyncio.run(asyncio_send()))
        for _ in range(len(kinds) + 1):
            assert calls.ready.acquire(timeout=PATIENCE)
        with hanging(private_server):
            begun = time.monotonic()
            frozen.set()
            calls.join()
        took = {name: at - begun for name, (at, _) in calls.ended.items()}
        assert max(took.values()) < 2 * limit, took
        assert took["result"] < limit, took
        for name, (_, error) in calls.ended.items():
            assert isinstance(error, RedisTimeout), (name, error)


def test_consumers_of_ones_own_hear_of_jobs_at_the_successor(
    replaceable: Replaceable,  # noqa: F811
) -> None:
    """They wait for jobs, each in its own way, and say nothing to the primary that hangs but that
    they are alive."""
    calls, url, name = Calls(), replaceable.url, replaceable.queue

    async def receive() -> object:
        async with (
            AsyncQueue(name, settings=settings(url)) as queue,
            queue.consumer(lease="6s") as consumer,
        ):
            calls.ready.release()
            while True:
                with suppress(RedisUnavailable):  # said once, and the next wait is at the successor
                    return await consumer.receive(OWN_S)

    def receive_one() -> object:
        while True:
            with suppress(RedisUnavailable):
                return consumer.receive(OWN_S)

    with (
        Queue(name, settings=settings(url)) as queue,
        Queue(name, settings=settings(url)) as own,
        own.consumer(lease="6s") as consumer,
    ):
        calls.make("asyncio", lambda: asyncio.run(receive()))
        calls.make("threads", receive_one)
        assert calls.ready.acquire(timeout=PATIENCE)
        with replaceable.hung():
            until(replaceable.successor, "a successor", PATIENCE)
            for n in range(2):
                queue.send("t", [n])
            sent_at = time.monotonic()
            calls.join()
        # a blocked command would be given up after all its time
        assert max(at for at, _ in calls.ended.values()) - sent_at < LISTEN_S / 2
        assert all(found is not None for _, found in calls.ended.values()), calls.ended
        assert not [found for _, found in calls.ended.values() if isinstance(found, Exception)]
