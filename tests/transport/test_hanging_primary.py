"""A primary that hangs: no call stays with it once another server has its place."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from rqueue.client._sync.queue import Queue
from rqueue.model.job import JobState
from rqueue.tasks.options import Options
from tests.support.hanging import (
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
    ):
        begun = time.monotonic()
        for id_ in ("known", "cancelled", "a-cancelled"):
            queue.send("t", options=Options(id=id_, replicas=1))
        kinds = sync_calls(queue)

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
        with hanging(replaceable.primary):
            frozen.set()
            calls.make("fresh", lambda: fresh.send("t", options=Options(id="fresh")))
            until(replaceable.successor, "a successor", PATIENCE)
            known_at = time.monotonic()
            queue.job("known").cancel()
            calls.join()
        after = {name: at - known_at for name, (at, _) in calls.ended.items()}
        assert max(after.values()) < AFTER_S + 2 * took, after
        for name, (_, found) in calls.ended.items():
            assert not isinstance(found, Exception) or "result" in name or "wait" in name, (
                name,
                found,
            )
        for id_ in ("sent", "big", "a-sent", "a-big", "fresh"):
            assert queue.job(id_).state() is JobState.READY
        assert queue.counts().ready == 5 + 2 * 600 + 1 + 2
