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


@pytest.mark.timeout(60)
def test_a_rate_is_kept_by_all_processes_and_nobody_polls_for_its_tokens(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """Two at once, then one each 400 ms; the consumer that watches knows when that is."""
    rate, jobs = JobLimit("api", 1, per_ms=400, burst=2), 5
    events = f"{queue_name}-events"
    queue.enqueue_many(
        Call("in_turn", [events, "api", number, ""], options=Options(limit=rate))
        for number in range(jobs)
    )
    pool = make_pool(app=[APP], processes=2)
    eventually(lambda: client.llen(events) >= 2, lambda: pool.log)
    begun, calls = now_ms(client), evalsha(client)
    eventually(lambda: client.llen(events) == 2 * jobs, lambda: pool.log)
    # three more tokens, of which a part of the first had come when the first jobs were seen
    assert now_ms(client) - begun > 400
    assert evalsha(client) - calls < 60
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    assert pool.drained() == Exit.OK
    assert not client.exists(*(queue.keys.base + name for name in ("permits", "claims")))


def now_ms(client: redis.Redis) -> float:
    seconds, micros = client.time()  # type: ignore[misc]
    return float(seconds * 1000 + micros / 1000)


def evalsha(client: redis.Redis) -> int:
    """Calls of scripts so far."""
    stats: Any = client.info("commandstats")
    return int(stats.get("cmdstat_evalsha", {"calls": 0})["calls"])
