"""What a crash of each part of a pool costs: nothing is lost, and only what ran is charged."""

import random
import re
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import psutil
import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import JobFailed
from rqueue.model.history_batch import read_entry
from rqueue.model.job import JobState
from rqueue.protocol import commands, scripts
from rqueue.tasks.options import Options
from rqueue.transport.lease_renewer import renewal_interval
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.profiles import examples
from tests.workers.pools import Pool, Watched, causes, eventually, go, header, noted, pop, started

MakePool = Callable[..., Pool]


@pytest.fixture
def safe_server(make_server: Callable[..., EmbeddedRedis]) -> EmbeddedRedis:
    """A server that may be killed: what it answered is on disk."""
    return make_server(config={"appendfsync": "always"})


def rows(queue: Queue) -> list[dict[str, Any]]:
    """The history."""
    entries: Any = queue.redis.xrange(queue.keys.history)
    return [row for _, fields in entries for row in read_entry(fields, queue.name)]


def ends(queue: Queue, id_: str) -> list[str]:
    """The job's outcomes in the history, but for attempts that come again."""
    outcomes = [str(row["outcome"]) for row in rows(queue) if row["id"] == id_]
    return [outcome for outcome in outcomes if outcome not in ("retry", "crash")]


@pytest.mark.each_server
def test_a_killed_worker_loses_nothing_and_only_the_running_job_is_charged(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    running = queue.enqueue("hold", queue_name)
    behind = queue.enqueue_many(Call("note", [queue_name, str(i)]) for i in range(12))
    pool = make_pool()
    worker = Watched(started(client, queue_name))
    worker.kill()
    # the lease is 30 s long: it is the supervisor that reclaims
    assert started(client, queue_name) != worker.pid
    assert causes(queue, running.id) == [("crash", "SIGKILL")]
    assert header(queue, running.id).attempts == 1
    assert [header(queue, job.id).attempts for job in behind] == [0] * 12
    go(client, queue_name)
    assert [pop(client, queue_name) for _ in range(12)] == [str(i) for i in range(12)]
    assert running.result(PATIENCE) == "done"
    assert f"(process {worker.pid}) was killed by SIGKILL; it ran {running.id}" in pool.log
    assert pool.drained() == Exit.OK


def test_a_worker_of_several_queues_is_reclaimed_in_each_of_them(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    first, second = queue.at(f"{queue_name}-1"), queue.at(f"{queue_name}-2")
    make_pool(queues=[first.name, second.name]).said("is ready")
    running = second.enqueue("hold", queue_name)
    worker = Watched(started(client, queue_name))
    waiting = first.enqueue("note", queue_name, "of the first")
    worker.kill()
    started(client, queue_name)
    assert causes(second, running.id) == [("crash", "SIGKILL")]
    assert causes(first, waiting.id) == []
    go(client, queue_name)
    assert running.result(PATIENCE) == "done"
    assert waiting.result(PATIENCE) is None
    for served in (first, second):
        assert execute(client, commands.counts(served.keys)).held == 0


@pytest.mark.parametrize(
    ("how", "type_"), [("SIGSEGV", "SIGSEGV"), ("SIGKILL", "SIGKILL"), ("exit", "exit code 3")]
)
def test_a_job_that_kills_its_workers_ends_in_the_dead_letters_with_the_cause(
    how: str, type_: str, queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    poison = queue.send("die", [f"{queue_name}-poison", how], {}, Options(max_deliveries=3))
    behind = queue.enqueue("note", queue_name, "alive")
    pool = make_pool()
    assert pop(client, queue_name) == "alive"
    with pytest.raises(JobFailed) as failed:
        poison.result(PATIENCE)
    assert (failed.value.kind, failed.value.type) == ("crash", type_)
    assert client.llen(f"{queue_name}-poison") == 3
    assert ends(queue, poison.id) == ["dead"]
    assert behind.result(PATIENCE) is None
    assert pool.drained() == Exit.OK


def test_under_load_kills_lose_nothing_and_end_no_job_twice(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    total, kills = examples(500, 3000), 5
    jobs = queue.enqueue_many(Call("note", [queue_name, str(i)]) for i in range(total))
    pool = make_pool(processes=2)
    for kill in range(kills):
        eventually(lambda due=(kill + 1) * total // (kills + 2): client.llen(queue_name) >= due)
        with suppress(psutil.NoSuchProcess):
            random.choice(psutil.Process(pool.pid).children()).kill()
    eventually(lambda: int(client.hget(queue.keys.meta, "acked") or 0) >= total)
    assert pool.drained() == Exit.OK
    ran = Counter(client.lrange(queue_name, 0, -1))
    assert set(ran) == {str(i).encode() for i in range(total)}
    assert max(ran.values()) <= kills + 1
    ended = Counter(row["id"] for row in rows(queue) if row["outcome"] == "ack")
    assert ended == Counter(job.id for job in jobs)


def test_without_their_supervisor_workers_finish_what_runs_and_leave(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    running = queue.enqueue("hold", queue_name)
    queue.enqueue("note", queue_name, "taken over")
    pool = make_pool()
    worker = Watched(started(client, queue_name))
    pool.send(signal.SIGKILL)
    pool.ended()
    pool.said(f"worker process {worker.pid}: the supervisor is gone; leaving")
    go(client, queue_name)
    worker.ended()
    assert running.result(PATIENCE) == "done"
    assert client.zcard(queue.keys.consumers) == 0
    make_pool()
    assert pop(client, queue_name) == "taken over"


def test_without_their_supervisor_workers_release_at_the_end_of_a_lease_what_still_runs(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    running = queue.enqueue("hold", queue_name)
    pool = make_pool(lease="1s", drain="10m")
    worker = Watched(started(client, queue_name))
    pool.send(signal.SIGKILL)
    pool.ended()
    worker.ended()
    make_pool()
    started(client, queue_name)
    go(client, queue_name)
    assert running.result(PATIENCE) == "done"


def test_without_its_supervisor_a_worker_loses_its_lease_and_another_pool_takes_over(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    running = queue.enqueue("hold", queue_name)
    queue.enqueue("note", queue_name, "taken over")
    pool = make_pool(lease="1s")
    worker = Watched(started(client, queue_name))
    noted(queue, running.id)
    worker.kill(signal.SIGSTOP)
    pool.send(signal.SIGKILL)
    pool.ended()
    other = make_pool(lease="1s")
    assert started(client, queue_name) != worker.pid
    assert causes(queue, running.id) == [("crash", "LeaseEnded")]
    go(client, queue_name)
    go(client, queue_name)  # the old worker may be listening too, and is not believed
    assert running.result(PATIENCE) == "done"
    assert pop(client, queue_name) == "taken over"
    assert other.drained() == Exit.OK
    worker.kill()
    worker.ended()


def test_when_the_whole_pool_is_killed_its_leases_end(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    keys = [f"{queue_name}-{i}" for i in range(2)]
    running = [queue.enqueue("hold", key) for key in keys]
    pool = make_pool(lease="1s", processes=2, prefetch=1)
    workers = [Watched(started(client, key)) for key in keys]
    behind = queue.enqueue_many(Call("note", [queue_name, str(i)]) for i in range(4))
    for job in running:
        noted(queue, job.id)
    for worker in workers:  # they would notice the end of their supervisor
        worker.kill(signal.SIGSTOP)
    pool.send(signal.SIGKILL)
    pool.ended()
    for worker in workers:
        worker.kill()
    other = make_pool(lease="1s", processes=3)
    assert {pop(client, queue_name) for _ in range(4)} == {"0", "1", "2", "3"}
    for key, job in zip(keys, running, strict=True):
        assert started(client, key)
        assert causes(queue, job.id) == [("crash", "LeaseEnded")]
        go(client, key)
        assert job.result(PATIENCE) == "done"
    assert other.drained() == Exit.OK
    assert [ends(queue, job.id) for job in (*running, *behind)] == [["ack"]] * 6


def test_a_pool_that_was_stopped_longer_than_its_lease_cannot_finish_what_it_lost(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    job = queue.enqueue("who", queue_name)
    zombie = make_pool(lease="1s")
    worker = Watched(started(client, queue_name))
    zombie.send(signal.SIGSTOP)
    worker.kill(signal.SIGSTOP)
    other = make_pool(lease="1s")
    heir = started(client, queue_name)
    assert heir != worker.pid
    zombie.send(signal.SIGCONT)
    worker.kill(signal.SIGCONT)
    go(client, queue_name)
    go(client, queue_name)
    assert job.result(PATIENCE) == heir
    assert other.drained() == Exit.OK
    # and it is a good worker again
    queue.enqueue("pid", queue_name)
    assert int(pop(client, queue_name)) == worker.pid
    assert zombie.drained() == Exit.OK
    assert ends(queue, job.id) == ["ack"]


def test_an_idle_worker_that_lost_its_lease_joins_again(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """It waits on a list that nobody writes to any more: its supervisor tells it."""
    queue.enqueue("pid", queue_name)
    pool = make_pool(lease="1s")
    pid = pop(client, queue_name)
    pool.send(signal.SIGSTOP)  # the supervisor alone
    other = make_pool(lease="1s")
    other.said("took back what consumers held")
    pool.send(signal.SIGCONT)
    assert other.drained() == Exit.OK
    queue.enqueue("pid", queue_name)
    assert pop(client, queue_name) == pid
    assert "although it lives (its lease ended, or Redis lost its data): it joins" in pool.log
    assert pool.drained() == Exit.OK


def test_the_jobs_of_a_stopped_worker_go_to_another_one(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    job = queue.enqueue("hold", queue_name)
    pool = make_pool(lease="1s", processes=2)
    worker = Watched(started(client, queue_name))
    worker.kill(signal.SIGSTOP)
    pool.said("is stopped by SIGSTOP")
    assert started(client, queue_name) != worker.pid
    go(client, queue_name)
    go(client, queue_name)
    assert job.result(PATIENCE) == "done"
    assert pool.drained() == Exit.OK


def test_the_lease_of_a_worker_that_goes_on_is_renewed_at_once(
    make_pool: MakePool, private_server: EmbeddedRedis, queue_name: str
) -> None:
    """The renewals while it was stopped left it out: the next regular one may come too late."""
    lease_s = 20.0
    url = private_server.url
    with Queue(queue_name, url) as queue, redis.Redis.from_url(url) as client:
        pool = make_pool(url, lease=f"{lease_s:g}s")
        queue.enqueue("pid", queue_name)
        worker = Watched(int(pop(client, queue_name)))
        worker.kill(signal.SIGSTOP)
        pool.said("is stopped by SIGSTOP")
        with monitoring(url) as monitor:
            began = monotonic()
            worker.kill(signal.SIGCONT)
            monitor.wait_for(scripts.script("renew").sha)
            assert monotonic() - began < renewal_interval(int(lease_s * 1000)) / 3
    assert pool.drained() == Exit.OK


def test_a_redis_that_dies_and_comes_back_loses_no_job(
    safe_server: EmbeddedRedis, make_pool: MakePool, queue_name: str
) -> None:
    server = safe_server
    with Queue(queue_name, server.url) as queue, redis.Redis.from_url(server.url) as client:
        pool = make_pool(server.url, processes=2, lease="2s")
        # to its end: a job whose own connection to Redis was cut would rightly be tried again
        queue.enqueue("note", queue_name, "before").result(PATIENCE)
        assert pop(client, queue_name) == "before"
        server.kill()
        pool.said("Redis is gone")
        server.start()
        jobs = queue.enqueue_many(Call("note", [queue_name, str(i)]) for i in range(20))
        assert {pop(client, queue_name) for _ in range(20)} == {str(i) for i in range(20)}
        pool.said("Redis is back after")
        lines = [line for line in pool.log.splitlines() if "Redis is" in line]
        assert all(re.search(r"(supervisor|worker process \d+): Redis is", line) for line in lines)
        eventually(lambda: all(job.state() is JobState.DONE for job in jobs))
        assert pool.drained() == Exit.OK
        assert " ERROR " not in pool.log


def test_a_worker_that_dies_while_redis_is_gone_is_mourned_when_it_is_back(
    safe_server: EmbeddedRedis, make_pool: MakePool, queue_name: str
) -> None:
    server = safe_server
    with Queue(queue_name, server.url) as queue, redis.Redis.from_url(server.url) as client:
        job = queue.send("deaf", [queue_name], {}, Options(max_deliveries=1))
        pool = make_pool(server.url)  # with a lease of 30 s
        worker = Watched(started(client, queue_name))
        server.kill()
        worker.kill()
        pool.said("Redis is gone")
        server.start()
        with pytest.raises(JobFailed) as failed:
            job.result(PATIENCE)
        assert failed.value.type == "SIGKILL"
        queue.enqueue("note", queue_name, "x")
        assert pop(client, queue_name) == "x"
        assert pool.drained() == Exit.OK


def test_a_pool_drains_while_redis_is_gone(safe_server: EmbeddedRedis, make_pool: MakePool) -> None:
    pool = make_pool(safe_server.url, drain=0.1, grace=0.2)
    pool.said("is ready")
    safe_server.kill()
    assert pool.drained() == Exit.OK
    assert "goes back when their leases end" in pool.log


def test_a_redis_that_hangs_does_not_keep_the_supervisor_from_its_duties(
    safe_server: EmbeddedRedis, make_pool: MakePool, queue_name: str
) -> None:
    server = safe_server
    with Queue(queue_name, server.url) as queue, redis.Redis.from_url(server.url) as client:
        job = queue.send("deaf", [queue_name], {}, Options(time_limit=1.0, max_deliveries=1))
        pool = make_pool(server.url, lease="1s", command_timeout="30s")
        worker = Watched(started(client, queue_name))
        hung = Watched(server.pid)
        hung.kill(signal.SIGSTOP)
        worker.ended()  # by its hard limit
        hung.kill(signal.SIGCONT)
        with pytest.raises(JobFailed):
            job.result(PATIENCE)
        assert pool.drained() == Exit.OK


def test_nothing_of_a_dead_pool_stays_registered(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    pool = make_pool(processes=2)
    pool.said("is ready", 2)
    names = [name.decode() for name in client.zrange(queue.keys.consumers, 0, -1)]
    assert len(names) == 2
    # what the end of a lease charges: this app has no async tasks
    assert {client.hget(queue.keys.consumer(name), "slots") for name in names} == {b"1"}
    pool.send(signal.SIGKILL)
    pool.ended()
    eventually(lambda: client.zcard(queue.keys.consumers) == 0)
    for name in names:
        assert not client.exists(queue.keys.consumer(name), queue.keys.held(name))
    counts = execute(client, commands.counts(queue.keys))
    assert (counts.interested, counts.notified, counts.not_interested) == (0, 0, 0)
