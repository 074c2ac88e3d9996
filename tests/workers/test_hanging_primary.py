"""Workers whose primary hangs while they have something to say to it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.support.hanging import OWN_S, Replaceable, replaceable, settings  # noqa: F401
from tests.support.patience import PATIENCE, until
from tests.workers.pools import Pool, started

AFTER_S = 8.0
"""Seconds after a successor is known until a new job has run, on a machine that is free."""


def test_workers_that_settle_go_on_at_the_successor(
    replaceable: Replaceable,  # noqa: F811
    make_pool: Callable[..., Pool],
    server: EmbeddedRedis,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of them wait for an answer when the promotion comes; none waits for all its time."""
    monkeypatch.setenv("RQUEUE_COMMAND_TIMEOUT", f"{OWN_S:.0f}s")
    pool = make_pool(
        replaceable.url, queues=[replaceable.queue], processes=2, lease="2m", tell=server.url
    )
    key = f"hanging:{queue_name}"
    with (
        Queue(replaceable.queue, settings=settings(replaceable.url)) as queue,
        Queue(queue_name, server.url) as notes,
    ):
        begun = time.monotonic()
        held = [queue.send("hold", [f"{key}{n}"], options=Options(replicas=1)) for n in range(2)]
        for n in range(2):
            started(notes.redis, f"{key}{n}")
        took = time.monotonic() - begun
        with replaceable.hung():
            for n in range(2):
                notes.redis.lpush(f"{key}{n}:go", "end")
            until(replaceable.successor, "a successor", PATIENCE)
            known_at = time.monotonic()
            queue.send("note", [key, "done"]).result(PATIENCE)
            after = time.monotonic() - known_at
            assert after < AFTER_S + 2 * took
            for job in held:
                job.result(PATIENCE)
        assert "a bug in rqueue" not in pool.log
        assert pool.drained() == Exit.OK
