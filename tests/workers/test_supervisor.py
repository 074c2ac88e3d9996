"""A pool in ordinary life: it starts, works, reports, drains; and what it refuses to work on."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import JobFailed
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.tasks.options import Options
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from tests.support.patience import PATIENCE
from tests.workers.pools import (
    APP,
    ROOT,
    Pool,
    Watched,
    eventually,
    go,
    header,
    noted,
    pop,
    started,
)

MakePool = Callable[..., Pool]


def test_jobs_run_in_order_and_a_drained_pool_leaves_nothing_behind(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    queue.enqueue_many(Call("note", [queue_name, str(i)]) for i in range(20))
    pool = make_pool()
    assert [pop(client, queue_name) for _ in range(20)] == [str(i) for i in range(20)]
    assert pool.drained() == Exit.OK
    counts = execute(client, commands.counts(queue.keys))
    assert (counts.ready, counts.held, counts.interested, counts.notified) == (0, 0, 0, 0)
    assert client.zcard(queue.keys.consumers) == 0


def test_a_drain_lets_running_jobs_finish_and_releases_the_others_uncounted(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    running = queue.enqueue("hold", queue_name)
    waiting = queue.enqueue("note", queue_name, "never")
    pool = make_pool()
    started(client, queue_name)
    noted(queue, running.id)  # within its first moment it could be one of several short jobs
    pool.send(signal.SIGTERM)
    pool.said("draining")
    go(client, queue_name, "finished")
    assert pool.ended() == Exit.OK
    assert running.result(0) == "finished"
    shown = execute(client, commands.show(queue.keys, waiting.id))
    assert (shown.state, client.llen(queue_name)) == ("ready", 0)
    assert header(queue, waiting.id).attempts == 0


def test_ctrl_c_drains_too(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    queue.enqueue("note", queue_name, "x")
    pool = make_pool()
    pop(client, queue_name)
    pool.send(signal.SIGINT)
    assert pool.ended() == Exit.OK


def test_what_is_not_done_by_the_drain_deadline_goes_back_uncounted(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    job = queue.enqueue("hold", queue_name)
    pool = make_pool(drain=0.1)
    started(client, queue_name)
    assert pool.drained() == Exit.UNFINISHED
    assert job.state() is JobState.READY
    assert header(queue, job.id).attempts == 0


def test_a_worker_that_hears_nothing_is_killed_after_the_deadline_and_charges_nobody(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    job = queue.enqueue("deaf", queue_name)
    behind = queue.enqueue("note", queue_name, "x")
    pool = make_pool(drain=0.1, grace=0.2)
    started(client, queue_name)
    assert pool.drained() == Exit.UNFINISHED
    assert "did not leave in time" in pool.log
    for released in (job, behind):
        assert released.state() is JobState.READY
        assert header(queue, released.id).attempts == 0


def test_a_job_past_its_hard_limit_is_killed_and_it_alone_is_charged(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    slow = queue.send("deaf", [queue_name], {}, Options(time_limit=0.3, max_deliveries=1))
    behind = queue.enqueue("hold", f"{queue_name}-2")
    make_pool()
    first = started(client, queue_name)
    assert started(client, f"{queue_name}-2") != first
    with pytest.raises(JobFailed) as failed:
        slow.result(PATIENCE)
    assert (failed.value.kind, failed.value.type) == ("time_limit", "HardTimeLimit")
    assert "0.3 s" in failed.value.remote_message
    assert header(queue, behind.id).attempts == 0
    go(client, f"{queue_name}-2")
    assert behind.result(PATIENCE) == "done"


def test_a_recycled_worker_is_replaced(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    queue.enqueue_many(Call("pid", [queue_name]) for _ in range(3))
    pool = make_pool(max_jobs=1, prefetch=1)
    assert len({pop(client, queue_name) for _ in range(3)}) == 3
    assert pool.drained() == Exit.OK
    assert " ERROR " not in pool.log


def test_a_rolling_restart_replaces_every_worker_once_its_successor_works(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    keys = [f"{queue_name}-{i}" for i in range(2)]
    for key in keys:
        queue.enqueue("hold", key)
    pool = make_pool(processes=2, prefetch=1)
    old = [Watched(started(client, key)) for key in keys]
    pool.send(signal.SIGHUP)
    for key in keys:  # the old ones finish what they have
        go(client, key)
    for process in old:
        process.ended()
    pool.said("SIGHUP: the workers are renewed, one after another")
    pool.said("rolling restart is done")
    queue.enqueue("pid", queue_name)
    assert int(pop(client, queue_name)) not in {process.pid for process in old}
    assert pool.drained() == Exit.OK


def test_a_rolling_restart_keeps_the_old_workers_if_the_new_app_is_broken(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, tmp_path: Path
) -> None:
    app = tmp_path / "rolling_app.py"
    app.write_text("from tests.workers import supervisor_app\n")
    queue.enqueue("pid", queue_name)
    pool = make_pool(app=["rolling_app"], path=str(tmp_path))
    before = pop(client, queue_name)
    app.write_text("this is no Python\n")
    pool.send(signal.SIGHUP)
    pool.said("rolling restart given up")
    queue.enqueue("pid", queue_name)
    assert pop(client, queue_name) == before
    assert pool.drained() == Exit.OK


@pytest.mark.parametrize("times", [2, 3])
def test_a_signal_that_ends_the_new_worker_early_does_not_end_a_rolling_restart(
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
    tmp_path: Path,
    times: int,
) -> None:
    app = tmp_path / "killed_app.py"
    app.write_text("from tests.workers import supervisor_app\n")
    queue.enqueue("pid", queue_name)
    pool = make_pool(app=["killed_app"], path=str(tmp_path))
    before = pop(client, queue_name)
    tries = tmp_path / "tries"
    tries.touch()
    app.write_text(
        f"""
import os, signal
from pathlib import Path
tries = Path({str(tries)!r})
tries.write_text(tries.read_text() + "x")
if len(tries.read_text()) <= {times}:
    os.kill(os.getpid(), signal.SIGKILL)
from tests.workers import supervisor_app
"""
    )
    pool.send(signal.SIGHUP)
    pool.said("rolling restart is done" if times < 3 else "rolling restart given up")
    pool.said("was killed by SIGKILL: the rolling restart starts another", 2)
    queue.enqueue("pid", queue_name)
    assert (pop(client, queue_name) == before) == (times == 3)
    assert tries.read_text() == "xxx"
    assert pool.drained() == Exit.OK


def test_more_and_fewer_workers_on_request(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    pool = make_pool()
    pool.said("is ready")
    pool.send(signal.SIGTTIN)
    pool.said("is ready", 2)
    assert client.zcard(queue.keys.consumers) == 2
    pool.send(signal.SIGTTOU)
    pool.said(") left")
    assert client.zcard(queue.keys.consumers) == 1
    assert pool.drained() == Exit.OK


def test_a_report_names_what_runs(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    job = queue.enqueue("hold", queue_name)
    pool = make_pool()
    pid = started(client, queue_name)
    pool.send(signal.SIGUSR1)
    pool.said(f"job {job.id} of queue {queue_name}")
    assert f"(process {pid}) works" in pool.log
    go(client, queue_name)
    assert pool.drained() == Exit.OK


def test_a_pidfile_lives_as_long_as_the_pool_and_keeps_a_second_one_out(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, tmp_path: Path
) -> None:
    path = tmp_path / "pool.pid"
    path.write_text("999999999\n")  # left behind by a crash
    queue.enqueue("note", queue_name, "x")
    pool = make_pool(pidfile=str(path))
    pop(client, queue_name)
    assert int(path.read_text()) == pool.pid
    second = make_pool(pidfile=str(path))
    assert second.ended() == Exit.APP
    assert f"belongs to process {pool.pid}" in second.log
    assert pool.drained() == Exit.OK
    assert not path.exists()


def test_a_pool_may_be_ended_while_its_workers_start(make_pool: MakePool, tmp_path: Path) -> None:
    (tmp_path / "slow_app.py").write_text(
        "import pathlib, threading\n"
        f"pathlib.Path({str(tmp_path / 'begun')!r}).touch()\n"
        "threading.Event().wait(60)\n"
    )
    pool = make_pool(app=["slow_app"], path=str(tmp_path), drain="1h", grace=0.2)
    eventually((tmp_path / "begun").exists)
    assert pool.drained() == Exit.OK


def test_systemd_is_notified(
    make_pool: MakePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        pool = make_pool()
        assert systemd.recv(100).startswith(b"READY=1")
        pool.send(signal.SIGTERM)
        assert systemd.recv(100) == b"STOPPING=1"
        assert pool.ended() == Exit.OK


# -- it refuses ------------------------------------------------------------------------------------


def test_an_app_that_cannot_be_imported_is_said_once(make_pool: MakePool) -> None:
    pool = make_pool(app=["no_such_app"], processes=3)
    assert pool.ended() == Exit.APP
    assert pool.log.count("cannot import the app") == 1
    assert "Traceback" not in pool.log


def test_workers_that_die_before_they_work_end_the_pool(
    make_pool: MakePool, tmp_path: Path
) -> None:
    (tmp_path / "dying_app.py").write_text("import os; os.kill(os.getpid(), 11)\n")
    pool = make_pool(app=["dying_app"], path=str(tmp_path))
    assert pool.ended() == Exit.APP
    assert "no worker got to work, the last one was killed by SIGSEGV" in pool.log


def test_a_server_that_may_evict_jobs_is_refused(
    make_server: Callable[..., EmbeddedRedis], make_pool: MakePool
) -> None:
    server = make_server(config={"maxmemory-policy": "allkeys-lru"})
    pool = make_pool(server.url)
    assert pool.ended() == Exit.REDIS
    assert "set it to 'noeviction'" in pool.log
    assert "Traceback" not in pool.log


def test_a_server_that_refuses_the_login_is_refused(
    make_server: Callable[..., EmbeddedRedis], make_pool: MakePool
) -> None:
    server = make_server(config={"requirepass": "secret"})
    pool = make_pool(server.url)
    assert pool.ended() == Exit.REDIS
    assert "refuses the login" in pool.log and "put the right user and password" in pool.log


def test_a_server_that_is_too_old_is_refused(make_pool: MakePool) -> None:
    with old_redis() as url:
        pool = make_pool(url)
        assert pool.ended() == Exit.REDIS
    assert "this is no Redis 6.2 or later" in pool.log


def test_a_server_that_is_not_there_is_waited_for_and_then_given_up(make_pool: MakePool) -> None:
    pool = make_pool("redis://127.0.0.1:1/0", patience=0.3)
    assert pool.ended() == Exit.REDIS
    assert pool.log.count("waiting at most 0.3 s") == 1


def test_a_signal_ends_the_wait_for_a_server(make_pool: MakePool) -> None:
    pool = make_pool("redis://127.0.0.1:1/0", patience="1h")
    pool.said("waiting")
    assert pool.drained() == Exit.OK


def test_a_fault_of_the_supervisor_has_its_exit_code(make_pool: MakePool) -> None:
    pool = make_pool(sabotage=True)
    assert pool.ended() == Exit.INTERNAL
    assert "the supervisor failed" in pool.log


def test_wrong_usage_has_its_exit_code() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "rqueue_workers", "--no-such-option"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'workers'}"},
    )
    assert said.returncode == Exit.USAGE
    assert "No such option" in said.stderr


def test_a_pool_file_is_all_a_pool_needs(
    queue: Queue, client: redis.Redis, queue_name: str, server: EmbeddedRedis, tmp_path: Path
) -> None:
    path = tmp_path / "pool.toml"
    path.write_text(f'app = "{APP}"\nqueues = ["{queue_name}"]\nurl = "{server.url}"\n')
    queue.enqueue("note", queue_name, "x")
    pool = subprocess.Popen(
        [sys.executable, "-m", "rqueue_workers", "--pool-file", path, "--processes", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'workers'}", "TEST_URL": server.url},
    )
    try:
        assert pop(client, queue_name) == "x"
        pool.send_signal(signal.SIGTERM)
        assert pool.wait(20) == Exit.OK
    finally:
        pool.kill()
        pool.wait()


# -- aids ------------------------------------------------------------------------------------------


@contextmanager
def old_redis() -> Iterator[str]:
    """Something that answers as a Redis 5 does, which knows no HELLO."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as commands:
                    while head := commands.readline():
                        words = [commands.readline() for _ in range(2 * int(head[1:]))][1::2]
                        answer = b"-ERR unknown command `HELLO`" if b"HELLO" in words[0] else b"+OK"
                        connection.sendall(answer + b"\r\n")

    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()
