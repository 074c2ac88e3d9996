"""Jobs that crash what runs them: what it costs them, and how little it costs others."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.errors import JobFailed
from rqueue.model.history_batch import read_entry
from rqueue.model.job import JobState
from rqueue.tasks.options import Options
from rqueue.tasks.retry import RetryPolicy
from rqueue_workers.exit_codes import Exit
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, Watched, causes, eventually, header, noted, pop, started

MakePool = Callable[..., Pool]
APP = "tests.workers.poison_app"


def rows(queue: Queue, *outcomes: str) -> list[dict[str, Any]]:
    """The history: rows with one of these outcomes, in their order."""
    entries: Any = queue.redis.xrange(queue.keys.history)
    every = [row for _, fields in entries for row in read_entry(fields, queue.name)]
    return [row for row in every if row["outcome"] in outcomes]


def ended(queue: Queue) -> bool:
    counts = queue.counts()
    return not (counts.ready or counts.held or counts.scheduled)


def test_poison_jobs_in_front_do_not_stop_a_queue(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """X-23: five jobs that end their workers, a pool of two, and twenty jobs behind."""
    said = f"{queue_name}-poison"
    poison = [queue.send("die_alone", [said]) for _ in range(5)]
    behind = [queue.send("innocent", [queue_name, i]) for i in range(20)]
    pool = make_pool(app=[APP], processes=2)
    pop(client, queue_name)  # some job behind was run, whatever became of those in front
    eventually(lambda: ended(queue), lambda: pool.log)
    for job in poison:
        assert job.state() is JobState.DEAD
        assert causes(queue, job.id) == [("crash", "exit code 3")] * 3
        assert (header(queue, job.id).attempts, header(queue, job.id).crashes) == (3, 3)
        who = f"job {job.id} (task die_alone, queue {queue_name})"
        pool.said(f"{who} is dead after")  # a moment after the queue knows
        (line,) = [line for line in pool.log.splitlines() if f"{who} is dead after" in line]
        assert "is dead after 3 crashes in 3 attempts" in line
        assert " ERROR " in line and "; the last one: exit code 3" in line
        assert f"rqueue show {job.id} -q {queue_name}" in line
        assert f"rqueue dead requeue {queue_name} --task die_alone" in line
    assert client.llen(said) == 15
    assert [job.state() for job in behind] == [JobState.DONE] * 20
    assert Counter(row["id"] for row in rows(queue, "crash", "dead")) == {j.id: 3 for j in poison}
    assert pool.drained() == Exit.OK


@pytest.mark.parametrize("threads", [0, 8])
def test_a_job_that_takes_the_whole_pool_with_it_kills_no_other_job(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, threads: int
) -> None:
    """X-24: a container that dies again and again, with a hundred slots and sixty jobs behind."""
    poison = queue.send("die_with_all", [f"{queue_name}-poison"])
    innocents = queue.enqueue_many(Call("innocent", (queue_name, i)) for i in range(60))
    deaths = 0
    while not ended(queue):
        pool = make_pool(app=[APP], lease="1s", threads=threads)
        eventually(
            lambda pool=pool: pool.dead or ended(queue),
            lambda pool=pool: f"{queue.counts()}\n{pool.log}",
        )
        deaths += pool.dead
        assert deaths <= 5
    assert poison.state() is JobState.DEAD
    eventually(lambda: f"job {poison.id} (task die_with_all" in pool.log, lambda: pool.log)
    # it is gone within a tenth of a second, mostly: then nobody knows it, and nobody is charged for
    # the first time
    crashes = [("crash", "LeaseEnded")] * 3
    assert causes(queue, poison.id) in ([("suspected", "LeaseEnded"), *crashes], crashes)
    assert [job.state() for job in innocents] == [JobState.DONE] * 60
    assert {row["id"] for row in rows(queue, "crash", "dead")} == {poison.id}


def test_a_short_job_before_one_that_takes_the_pool_with_it_is_no_dead_letter(
    queue: Queue, make_pool: MakePool, queue_name: str
) -> None:
    """It ends, and its process dies before that is reported. When it comes again it is settled
    before the next one begins, so that nobody suspects it twice."""
    innocent = queue.send("innocent", [queue_name, 0])
    poison = queue.send("die_with_all", [f"{queue_name}-poison"])
    while not ended(queue):
        pool = make_pool(app=[APP], lease="1s", processes=1)
        eventually(lambda pool=pool: pool.dead or ended(queue), lambda pool=pool: pool.log)
    assert innocent.state() is JobState.DONE
    assert poison.state() is JobState.DEAD


def test_what_runs_for_long_is_known_when_its_host_dies(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """X-24: two slots, one long job, which is not the oldest, and others behind."""
    oldest = queue.send("note", [queue_name, "of before"])
    assert queue.pause()
    long = queue.send("hold", [queue_name])
    behind = queue.enqueue_many(Call("note", [queue_name, str(i)]) for i in range(3))
    queue.resume()
    pool = make_pool(lease="3s", threads=2)
    assert pop(client, queue_name) == "of before"
    worker = Watched(started(client, queue_name))
    noted(queue, long.id)
    worker.kill(signal.SIGSTOP)
    pool.send(signal.SIGKILL)
    pool.ended()
    worker.kill()
    other = make_pool(lease="1s")
    started(client, queue_name)
    assert causes(queue, long.id) == [("crash", "LeaseEnded")]
    (row,) = rows(queue, "crash")
    assert row["id"] == long.id
    assert 0 < row["enqueued"] <= row["acquired"] <= row["started"]
    assert row["finished"] - row["started"] >= 1000, "the lease, at least"
    assert (row["attempts"], row["deliveries"]) == (0, 0)
    client.rpush(f"{queue_name}:go", "done")
    assert long.result(PATIENCE) == "done"
    eventually(lambda: all(job.state() is JobState.DONE for job in behind))
    assert oldest.state() is JobState.DONE
    assert other.drained() == Exit.OK
    assert not list(client.scan_iter(queue.keys.base + "running:*"))


def test_killed_attempts_have_times(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    crashed = queue.send("die", [f"{queue_name}-a", "SIGKILL"], {}, Options(max_crashes=1))
    slow = queue.send("hold", [queue_name], {}, Options(time_limit=0.5, max_crashes=2))
    pool = make_pool()
    for _ in range(2):
        started(client, queue_name)
    with pytest.raises(JobFailed):
        slow.result(PATIENCE)
    (first,) = [row for row in rows(queue, "dead") if row["id"] == crashed.id]
    again, last = [row for row in rows(queue, "crash", "dead") if row["id"] == slow.id]
    assert (again["outcome"], last["outcome"]) == ("crash", "dead")
    # the worker that died before had held it
    assert [(row["attempts"], row["deliveries"]) for row in (again, last)] == [(0, 1), (1, 2)]
    for row in (first, again, last):
        assert row["enqueued"] <= row["acquired"] <= row["started"] <= row["finished"]
    for row in (again, last):
        assert 500 <= row["finished"] - row["started"] < 5000
    assert pool.drained() == Exit.OK


@pytest.mark.parametrize(("name", "runs"), [("fragile", 1), ("brittle", 2)])
def test_the_limits_of_a_task_hold_for_jobs_that_came_by_its_name(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, name: str, runs: int
) -> None:
    job = queue.send(name, [queue_name])
    pool = make_pool(app=[APP])
    with pytest.raises(JobFailed):
        job.result(PATIENCE)
    assert client.llen(queue_name) == runs
    assert pool.drained() == Exit.OK


def test_a_task_may_allow_more_attempts_than_its_queue(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    queue.configure(max_deliveries=2)
    at_once = RetryPolicy(delay=0.0)
    job = queue.send("sturdy", [queue_name], {}, Options(retry=at_once))
    pool = make_pool(app=[APP])
    with pytest.raises(JobFailed):
        job.result(PATIENCE)
    assert client.llen(queue_name) == 12
    assert pool.drained() == Exit.OK


@pytest.mark.parametrize("who", ["queue", "pool", "job"])
def test_queue_pool_and_job_set_how_often_a_job_may_crash(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, who: str
) -> None:
    queue.configure(max_crashes=1 if who == "queue" else 9)
    own = Options(max_crashes=1) if who == "job" else Options()
    job = queue.send("die_alone", [queue_name], {}, own)
    pool = make_pool(app=[APP], max_crashes=1 if who == "pool" else 0)
    with pytest.raises(JobFailed):
        job.result(PATIENCE)
    assert client.llen(queue_name) == 1
    assert pool.drained() == Exit.OK


def test_a_fault_of_rqueue_itself_charges_nobody_and_ends_the_pool(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    job = queue.send("sabotage", [queue_name])
    pool = make_pool(app=[APP])
    assert pool.ended() == Exit.INTERNAL
    assert "a fault of rqueue's own, no job is charged" in pool.log
    assert "again and again by a fault of rqueue's own: giving up" in pool.log
    assert client.llen(queue_name) == 5
    assert header(queue, job.id).attempts == 0
    assert rows(queue, "crash", "dead") == []
    assert job.state() is JobState.READY


def test_a_job_that_makes_rqueue_fail_again_is_charged(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """It raises an exception in a thread of the worker: once is an accident."""
    job = queue.send("inject", [queue_name])
    pool = make_pool(app=[APP], threads=2)
    for charged in (0, 1, 2, 3):
        eventually(lambda charged=charged: client.llen(queue_name) > charged, lambda: pool.log)
        # the main thread wakes up: it raises in its own code
        for one in client.client_list():
            if one["cmd"] == "blpop":
                client.client_kill_filter(_id=one["id"])
        pool.said("a fault of rqueue's own", charged + 1)
        eventually(lambda charged=charged: header(queue, job.id).crashes == charged)
    assert job.state() is JobState.DEAD
    assert causes(queue, job.id) == [("crash", "exit code 70")] * 3
    assert pool.log.count("a fault of rqueue's own, no job is charged") == 1
    assert pool.log.count(f"not the first one while it ran {job.id}: charged") == 3
    eventually(lambda: ended(queue))
    assert {row["id"] for row in rows(queue, "crash", "dead")} == {job.id}
    assert pool.drained() == Exit.OK


@pytest.mark.parametrize("processes", [1, 2])
def test_many_jobs_that_make_rqueue_fail_do_not_end_the_pool(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, processes: int
) -> None:
    """Each is an accident once, and charged from then on: the pool has no fault without them."""
    said = f"{queue_name}-wrecks"
    wrecks = [queue.send("wreck", [said]) for _ in range(6)]
    behind = queue.send("innocent", [queue_name, 7])
    pool = make_pool(app=[APP], threads=1, processes=processes)
    for wreck in wrecks:
        eventually(lambda id=wreck.id: header(queue, id).crashes > 0, lambda: pool.log)
    eventually(lambda: client.lrange(queue_name, 0, -1) == [b"7"], lambda: pool.log)
    eventually(lambda: behind.state() is JobState.DONE)
    assert pool.log.count("a fault of rqueue's own, no job is charged") >= 5
    assert "giving up" not in pool.log
    pool.drained()


def test_workers_that_die_idle_are_replaced_more_slowly_each_time(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    pool = make_pool(respawn_delays=[0.0, 0.01, 0.02])
    for _ in range(4):
        queue.enqueue("pid", queue_name)
        worker = Watched(int(pop(client, queue_name)))
        eventually(lambda: ended(queue))
        worker.kill()
        worker.ended()
    pool.said("another worker for slot 0 in 0.01 s")
    pool.said("another worker for slot 0 in 0.02 s", 2)
    assert pool.drained() == Exit.OK
