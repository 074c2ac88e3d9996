"""Limits in real pools: never more at a time than they allow, and a killed worker's permit is free
again."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.model.job_limit import JobLimit
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.workers.pools import Pool, eventually

MakePool = Callable[..., Pool]
APP = "tests.workers.groups_app"
JOBS = 30


def ended(queue: Queue) -> bool:
    counts = queue.counts()
    return not (counts.ready or counts.held or counts.scheduled or counts.blocked)


@pytest.mark.timeout(120)
def test_one_at_a_time_runs_in_two_processes(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    special = {3: "killed", 8: "retried"}
    events = f"{queue_name}-events"
    options = Options(limit=JobLimit("crm", 1))
    queue.enqueue_many(
        Call("in_turn", [events, "crm", number, special.get(number, "")], options=options)
        for number in range(JOBS)
    )
    pool = make_pool(app=[APP], processes=2)
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    said: Any = client.lrange(events, 0, -1)
    running, begun = None, []
    for word, _, number in (event.decode().split() for event in said):
        if word == "begin":
            # 3 began, and its worker was killed
            assert running in (None, "3"), said
            assert running is None or begun.count("3") == 1, said
            running = number
            begun.append(number)
        else:
            assert running == number, said
            running = None
    assert running is None
    twice = {str(number) for number in special}
    assert sorted(begun, key=int) == sorted([*map(str, range(JOBS)), *twice], key=int)
    assert pool.drained() == Exit.OK
    assert not client.exists(queue.keys.base + "permits", queue.keys.base + "claims")
