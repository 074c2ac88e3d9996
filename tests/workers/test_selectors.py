"""Selectors in real pools: a rolling deploy, as the page on kinds of queues tells it."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.workers.pools import Pool, eventually

MakePool = Callable[..., Pool]
APP = "tests.workers.selectors_app"


@pytest.mark.timeout(120)
def test_a_rolling_deploy_runs_no_job_in_a_pool_that_is_too_old(
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Q-22: two pools, two versions of the code; the old one drains, the new one takes over."""
    ran_key = f"{queue_name}-ran"

    def put(first: int, version: int) -> None:
        for number in range(first, first + 20):
            options = Options(labels={"version": version})
            queue.send("note_version", [ran_key, number, version], None, options)

    def done(count: int) -> Callable[[], bool]:
        return lambda: client.llen(ran_key) == count

    queue.configure(kind="selectors")
    monkeypatch.setenv("RUNS_VERSION", "7")
    old = make_pool(app=[APP], processes=1, select="version <= 7 or version is null")
    put(0, 7)
    eventually(done(20), lambda: old.log)
    put(20, 8)  # nobody may take them yet
    eventually(lambda: queue.counts().unheard == {"version=8": 20}, lambda: old.log)
    monkeypatch.setenv("RUNS_VERSION", "8")
    new = make_pool(app=[APP], processes=1, select="version <= 8 or version is null")
    eventually(done(40), lambda: new.log)
    assert old.drained() == Exit.OK
    put(40, 7)
    eventually(done(60), lambda: new.log)
    assert new.drained() == Exit.OK
    said: Any = client.lrange(ran_key, 0, -1)
    ran = [tuple(map(int, line.split())) for line in said]
    assert sorted(number for number, *_ in ran) == list(range(60))
    assert all(pool >= version for _, version, pool in ran), ran
