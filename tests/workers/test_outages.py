"""Redis goes away, refuses, forgets the worker: said once, and nothing is lost."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import JobFailed, RedisBusy, RedisOutOfMemory
from rqueue.protocol import commands
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.busy import busy
from tests.support.patience import PATIENCE
from tests.workers.children import APP, ChildProcess, WorkerFixture, eventually
from tests.workers.pools import Pool, Watched
from tests.workers.pools import started as started_job


@pytest.fixture
def lone(make_server: Callable[..., EmbeddedRedis], tmp_path: Path) -> EmbeddedRedis:
    """A server of this test alone, which keeps its data."""
    return make_server(directory=tmp_path / "redis", config={"appendfsync": "always"})


@pytest.fixture
def frail(lone: EmbeddedRedis, queue_name: str, tmp_path: Path) -> Iterator[WorkerFixture]:
    made = WorkerFixture(lone.url, queue_name, tmp_path)
    yield made
    made.close()


def test_a_job_that_ends_while_redis_is_gone_is_settled_when_it_is_back(
    frail: WorkerFixture, lone: EmbeddedRedis, tmp_path: Path
) -> None:
    child = frail.child()
    started, file = tmp_path / "started", tmp_path / "file"
    job = frail.send("c.file", str(started), str(file))
    eventually(started.exists, "the start of the job")
    lone.kill()
    file.touch()
    eventually(lambda: "Redis is gone" in child.log, "a word about it")
    lone.start()
    assert job.result(PATIENCE) == "found"
    assert frail.result("c.echo", 1) == 1
    assert child.log.count("Redis is gone") == 1
    assert child.log.count("Redis is back") == 1
    rows = [row for row in frail.history() if row["id"] == job.id]
    assert [(row["outcome"], row["attempts"]) for row in rows] == [("ack", 0)]


@pytest.mark.each_server
def test_a_server_that_loads_its_data_is_waited_for(
    frail: WorkerFixture, lone: EmbeddedRedis, make_server: Callable[..., EmbeddedRedis]
) -> None:
    child = frail.child()
    assert frail.result("c.echo", 1) == 1
    job = frail.send("c.echo", 2, delay_ms=1)
    frail.redis.mset({f"ballast:{n}": n for n in range(3_000)})
    frail.redis.bgrewriteaof()
    eventually(lambda: not frail.redis.info()["aof_rewrite_in_progress"], "the rewritten file")
    lone.stop()
    make_server(directory=lone.directory, config={"key-load-delay": 500})
    assert frail.redis.info("errorstats")["errorstat_LOADING"]["count"] > 0
    assert job.result(PATIENCE) == 2
    assert frail.result("c.echo", 3) == 3
    assert child.log.count("Redis is gone") == 1
    assert child.log.count("Redis is back") == 1


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.each_server
def test_a_server_that_is_full_is_drained(frail: WorkerFixture, threads: int) -> None:
    """H-10: nothing is taken in, everything else goes on."""
    jobs = [frail.send("c.echo", n) for n in range(40)]
    failing = frail.send("c.fail_once_at_most")
    frail.redis.config_set("maxmemory", 1)
    with pytest.raises(RedisOutOfMemory):
        frail.send("c.echo", 1)
    with pytest.raises(RedisOutOfMemory):
        jobs[0].result(PATIENCE)  # who waits says so in Redis
    child = frail.child(threads=threads)
    frail.settled()
    assert [job.result(0) for job in jobs] == list(range(40))
    with pytest.raises(JobFailed):
        failing.result(0)
    assert "Redis is gone" not in child.log
    frail.redis.config_set("maxmemory", 0)
    assert frail.result("c.echo", 1) == 1


@pytest.mark.parametrize("threads", [0, 2])
def test_an_idle_worker_survives_a_restart(
    frail: WorkerFixture, lone: EmbeddedRedis, threads: int
) -> None:
    """C-16."""
    child = frail.child(threads=threads)
    assert frail.result("c.echo", 1) == 1
    lone.restart()
    assert frail.result("c.echo", 2) == 2
    assert child.leave() == 0


def test_a_worker_may_be_started_before_redis(frail: WorkerFixture, lone: EmbeddedRedis) -> None:
    lone.stop()
    child = frail.child(ready=False)
    eventually(lambda: "Redis is gone" in child.log, "a word about it")
    lone.start()
    assert frail.result("c.echo", 2) == 2


def test_a_worker_can_leave_while_redis_is_gone(frail: WorkerFixture, lone: EmbeddedRedis) -> None:
    child = frail.child(drain=0.2)
    lone.stop()
    eventually(lambda: "Redis is gone" in child.log, "a word about it")
    child.ask_to_leave()
    assert child.wait() == 0


def _ended_while_redis_is_gone(
    frail: WorkerFixture, lone: EmbeddedRedis, tmp_path: Path, lease_ms: int
) -> tuple[ChildProcess, JobHandle[str]]:
    """A worker that is to leave, and whose job ended after Redis had gone."""
    settings = Settings(url=frail.url, lease_ms=lease_ms)
    child = frail.child(drain=0.2, settings=settings)
    started, file = tmp_path / "started", tmp_path / "file"
    job = frail.send("c.file", str(started), str(file))
    eventually(started.exists, "the start of the job")
    lone.kill()
    file.touch()
    eventually(lambda: "Redis is gone" in child.log, "a word about it")
    child.ask_to_leave()
    said = "1 outcome to be reported, and Redis is gone: leaving waits for it, at most "
    eventually(lambda: said in child.log, "a word about that")
    return child, job


def test_a_worker_that_leaves_waits_for_redis_while_its_lease_may_hold(
    frail: WorkerFixture, lone: EmbeddedRedis, tmp_path: Path
) -> None:
    child, job = _ended_while_redis_is_gone(frail, lone, tmp_path, 60_000)
    until = monotonic() + 0.5  # more than the drain
    eventually(lambda: monotonic() > until, "the end of the drain")
    assert not child.exited
    lone.start()
    assert child.wait() == 0
    assert job.result(0) == "found"
    rows = [row for row in frail.history() if row["id"] == job.id]
    assert [(row["outcome"], row["attempts"]) for row in rows] == [("ack", 0)]


def test_and_no_longer(frail: WorkerFixture, lone: EmbeddedRedis, tmp_path: Path) -> None:
    child, _ = _ended_while_redis_is_gone(frail, lone, tmp_path, 1_500)
    assert child.wait() == 3
    assert "1 outcome could not be reported" in child.log


def test_a_pool_that_leaves_waits_too(
    lone: EmbeddedRedis, queue_name: str, make_pool: Callable[..., Pool], tmp_path: Path
) -> None:
    pool = make_pool(lone.url, drain="200ms", grace="200ms", lease="60s", app=[APP])
    started, file = tmp_path / "started", tmp_path / "file"
    with Queue(queue_name, lone.url) as queue:
        job = queue.enqueue("c.file", str(started), str(file))
        eventually(started.exists, "the start of the job")
        lone.kill()
        file.touch()
        pool.said("Redis is gone")
        pool.send(signal.SIGTERM)
        pool.said("1 outcome to be reported, and Redis is gone")
        until = monotonic() + 1.0
        eventually(lambda: monotonic() > until, "the end of drain and grace")
        lone.start()
        assert pool.ended() == 0
        assert job.result(0) == "found"


def test_cut_connections_lose_and_repeat_nothing(frail: WorkerFixture) -> None:
    ids = []
    child = frail.child()
    for round_ in range(6):
        frail.queue.pause()
        ids += [frail.send("c.noop").id for _ in range(300)]
        frail.queue.resume()
        eventually(lambda least=300 * round_: _acked(frail) > least, "progress")
        # the reply under way is lost: the worker asks what it holds
        frail.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    frail.settled()
    rows = frail.history()
    assert sorted(row["id"] for row in rows) == sorted(ids)
    assert {row["outcome"] for row in rows} == {"ack"}
    assert "dropped" not in child.log


def _acked(workers: WorkerFixture) -> int:
    return int(workers.redis.hget(workers.queue.keys.meta, "acked") or 0)


def test_a_server_that_takes_no_writes_is_waited_for(frail: WorkerFixture) -> None:
    child = frail.child()
    assert frail.result("c.echo", 1) == 1
    frail.redis.execute_command("REPLICAOF", "127.0.0.1", "1")
    eventually(lambda: "takes no writes" in child.log, "a word about it")
    frail.redis.execute_command("REPLICAOF", "NO", "ONE")
    assert frail.result("c.echo", 2) == 2
    assert child.log.count("Redis is gone") == 1


@pytest.mark.each_server
def test_a_server_that_a_script_keeps_busy_is_waited_for(
    frail: WorkerFixture, lone: EmbeddedRedis, tmp_path: Path
) -> None:
    child = frail.child()
    started, file = tmp_path / "started", tmp_path / "file"
    job = frail.send("c.file", str(started), str(file))
    eventually(started.exists, "the start of the job")
    with frail.queue.putter() as putter:
        with busy(lone):
            kept = putter.put("c.echo", 2)
            file.touch()
            eventually(lambda: "has kept Redis busy" in child.log, "a word about it")
            with pytest.raises(RedisBusy):
                frail.send("c.echo", 1)
            with pytest.raises(RedisBusy):
                job.result(0.5)
            assert not kept.wait_stored(0.1)
        assert job.result(PATIENCE) == "found"
        assert kept.result(PATIENCE) == 2
        assert putter.failed == 0
    assert "a bug in rqueue" not in child.log
    assert child.log.count("Redis is gone") == 1
    rows = [row for row in frail.history() if row["id"] == job.id]
    assert [(row["outcome"], row["attempts"]) for row in rows] == [("ack", 0)]


def test_a_server_that_forgot_its_scripts_is_taught_them(frail: WorkerFixture) -> None:
    frail.child()
    assert frail.result("c.echo", 1) == 1
    frail.redis.script_flush()
    assert frail.result("c.echo", 2) == 2


def test_results_after_the_end_of_the_lease_are_dropped(
    workers: WorkerFixture, tmp_path: Path
) -> None:
    child = workers.child()
    started, file = tmp_path / "started", tmp_path / "file"
    job = workers.send("c.file", str(started), str(file))
    eventually(started.exists, "the start of the job")
    _end_leases(workers)
    assert workers.counts().ready == 1
    file.touch()
    assert job.result(PATIENCE) == "found"
    eventually(lambda: "1 outcome came too late" in child.log, "the warning")
    assert child.page.rejoins(0) == 1
    done = [row for row in workers.history() if row["outcome"] == "ack"]
    # it was suspected, not charged: nobody had noted what ran
    assert [(row["id"], row["attempts"]) for row in done] == [(job.id, 0)]


def test_a_redis_that_lost_its_data_is_named(
    frail: WorkerFixture, lone: EmbeddedRedis, tmp_path: Path
) -> None:
    child = frail.child()
    started, file = tmp_path / "started", tmp_path / "file"
    frail.send("c.file", str(started), str(file))
    eventually(started.exists, "the start of the job")
    frail.redis.flushall()
    file.touch()
    eventually(lambda: "Redis has lost its data" in child.log, "the loss")
    assert "its jobs went back" not in child.log
    assert "given to others" not in child.log
    assert frail.result("c.echo", 1) == 1


def test_an_idle_worker_that_lost_its_lease_joins_again(workers: WorkerFixture) -> None:
    other = f"{workers.name}-2"
    child = workers.child(queues=(workers.name, other))
    _end_leases(workers)
    workers.send("c.noop")  # waits: no consumer is there to be notified
    workers.queue.at(other).send("c.noop")
    # it hears of nothing in the one queue; in the other it is still there
    workers.redis.rpush(workers.queue.keys.wake(f"{child.base}.0"), "w")
    workers.settled()
    assert (child.page.rejoins(0), child.page.rejoins(1)) == (1, 0)
    assert workers.queue.at(other).send("c.echo", (2,)).result(PATIENCE) == 2


def _end_leases(workers: WorkerFixture) -> None:
    move_time(workers.queue, 1_000_000)
    execute(workers.redis, commands.renew(workers.queue.keys, 600_000, []))


def test_a_worker_that_dies_while_redis_is_busy_is_mourned_when_it_is_not(
    lone: EmbeddedRedis, make_pool: Callable[..., Pool], queue_name: str
) -> None:
    with Queue(queue_name, lone.url) as queue:
        job = queue.send("deaf", [queue_name], {}, Options(max_deliveries=1))
        pool = make_pool(lone.url)  # with a lease of 30 s
        worker = Watched(started_job(queue.redis, queue_name))
        with busy(lone):
            worker.kill()
            pool.said("has kept Redis busy")
        with pytest.raises(JobFailed) as failed:
            job.result(PATIENCE)
        assert failed.value.type == "SIGKILL"
        assert "ERROR cannot take back" not in pool.log
        assert pool.drained() == 0
