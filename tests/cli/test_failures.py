"""What goes wrong is one line that says what to do, with a documented exit code."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
import redis
from click.testing import Result
from redis import exceptions as rx

from rqueue import errors
from rqueue.cli.exit_codes import Failure
from rqueue.cli.failures import exit_code
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.advice import describe
from rqueue.protocol.error_mapping import translate
from tests.support.command_line import program
from tests.support.stub_server import StubServer

Run = Callable[..., Result]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


UNKNOWN_HELLO = b"-ERR unknown command 'HELLO'\r\n"
NO_REDIS = b"HTTP/1.1 400 Bad Request\r\n\r\n"


def one_line(text: str) -> str:
    assert text.startswith("rqueue: ")
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    return text


def test_without_a_url_it_says_what_to_set(run: Run) -> None:
    said = one_line(run("queues", url=None, code=2).stderr)
    assert "RQUEUE_URL" in said and "--url" in said and "rqueue dev" in said
    said = one_line(run("worker", "app.tasks", url=None, code=2).stderr)
    assert "RQUEUE_URL" in said and "--dev" in said
    # 3, a server that is not found, is a pool's for jobs that have to run again
    assert "rqueue dev" in one_line(run("worker", "a", "--dev", url=None, code=2).stderr)


def test_a_url_that_is_none(run: Run) -> None:
    said = one_line(run("queues", url="http://localhost:6379", code=2).stderr)
    assert "redis://" in said


def test_nobody_listens(command: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refused
        url = f"redis://:secret@127.0.0.1:{taken.getsockname()[1]}/0"
        done = command("queues", "--url", url)
    assert done.returncode == 4
    assert "is the server running" in one_line(done.stderr)
    assert "secret" not in done.stderr
    assert done.stdout == ""


def test_a_socket_that_is_not_there(run: Run) -> None:
    one_line(run("queues", url="unix:///nowhere/redis.sock", code=4).stderr)


def test_a_host_that_is_not_there(run: Run) -> None:
    one_line(run("queues", url="redis://no-such-host.invalid:6379/0", code=4).stderr)


def test_a_wrong_password(make_server: Callable[..., EmbeddedRedis], run: Run) -> None:
    server = make_server(config={"requirepass": "right"}, port=0)
    for url in (server.tcp_url, server.tcp_url.replace("redis://", "redis://:wrong@")):
        said = one_line(run("queues", url=url, code=4).stderr)
        assert "redis://USER:PASSWORD@" in said
        assert "wrong@" not in said
    run("queues", url=server.tcp_url.replace("redis://", "redis://:right@"))


def test_a_server_too_old(run: Run) -> None:
    with StubServer() as stub:
        stub.info = "redis_version:6.0.20\r\nmaxmemory_policy:noeviction"
        said = one_line(run("queues", url=stub.url, code=4).stderr)
    assert "Redis 6.0 is too old" in said and "6.2" in said


def test_a_server_much_too_old(run: Run) -> None:
    with StubServer(UNKNOWN_HELLO) as stub:
        stub.greeting = UNKNOWN_HELLO
        said = one_line(run("queues", url=stub.url, code=4).stderr)
    assert "no Redis 6.2 or later" in said


def test_something_that_is_no_redis(run: Run) -> None:
    with StubServer(NO_REDIS) as stub:
        stub.greeting = NO_REDIS
        one_line(run("queues", url=stub.url, code=4).stderr)


def test_unknown_queues_and_jobs(run: Run, queue: Queue) -> None:
    for command in ("jobs", "consumers", "history", "pause", "resume", "purge", "doctor"):
        said = one_line(run(command, "no-such-queue", code=3).stderr)
        assert "'no-such-queue'" in said and "rqueue queues" in said
    run("stats", "no-such-queue", code=3)
    run("queues", "no-such-queue", code=3)
    run("dead", "list", "no-such-queue", code=3)
    run("dead", "purge", "no-such-queue", "--yes", code=3)
    queue.send("t")
    for command in ("show", "watch", "log", "result", "cancel"):
        assert "no-such-job" in one_line(run(command, "no-such-job", code=3).stderr)
        run(command, "no-such-job", "--queue", queue.name, code=3)
        run(command, "no-such-job", "--queue", "no-such-queue", code=3)


def test_a_name_that_cannot_be_one(run: Run) -> None:
    one_line(run("jobs", "x" * 300, code=2).stderr)
    one_line(run("queues", "--namespace", "a b", code=2).stderr)


def test_a_namespace_is_honoured(run: Run, queue: Queue) -> None:
    queue.send("t")
    assert queue.name in run("queues").stdout
    assert queue.name not in run("queues", "--namespace", "other").stdout
    assert queue.name not in run("--namespace", "other", "queues").stdout


def test_a_closed_pipe_is_no_error(server: EmbeddedRedis, queue: Queue) -> None:
    queue.enqueue_many([])
    for _ in range(3):
        queue.send("t", ["x" * 40_000])
    command = [sys.executable, "-m", "rqueue.cli", "--url", server.url, "jobs", queue.name]
    with subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_ends_a_follower(server: EmbeddedRedis, queue: Queue) -> None:
    queue.cancel(queue.send("t").id)
    command = [sys.executable, "-m", "rqueue.cli", "--url", server.url, "history", queue.name, "-f"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline().startswith(b"finished")
        assert b"cancelled" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert b"Traceback" not in said


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConnectionLost("x"), 4),
        (errors.RedisTimeout("x"), 4),
        (errors.RedisLoading("x"), 4),
        (errors.RedisReadOnly("x"), 4),
        (errors.RedisOutOfMemory("x"), 4),
        (errors.AuthenticationFailed("x"), 4),
        (errors.WrongServer("x"), 4),
        (errors.EvictionPolicy("allkeys-lru"), 4),
        (errors.EmbeddedRedisError("x"), 4),
        (errors.ConfigError("url", "x"), 2),
        (errors.InvalidName("queue name", "", "is empty"), 2),
        (errors.UnknownQueue("q"), 3),
        (errors.UnknownJob("j"), 3),
        (errors.ResultTimeout("j", 1.0, "ready"), 5),  # type: ignore[arg-type]
        (errors.JobFailed("j", type="ValueError"), 1),
        (errors.JobCancelled("j"), 1),
        (errors.NoConsumer("q"), 1),
        (Failure("x", 3), 3),
        (click.UsageError("x"), 2),
        (click.Abort(), 130),
    ],
)
def test_exit_codes(error: Exception, code: int) -> None:
    assert exit_code(error) == code
    assert "\n" not in describe(error)


def test_a_socket_of_this_machine_is_not_asked_about_tls() -> None:
    said = "Connection closed by server."
    for url, asked in (("redis://h:1/0", True), ("unix:///run/redis.sock", False)):
        error = rx.ConnectionError(said)
        made = translate(error, url=url, sent=False)
        assert ("does it want TLS?" in str(made)) == asked
        known = errors.ConnectionLost(f"cannot reach Redis: {said}", url=url)
        assert ("does it want TLS (rediss://)" in describe(known)) == asked


def test_a_server_that_may_evict_is_warned_of_once(private_server: EmbeddedRedis) -> None:
    with redis.Redis.from_url(private_server.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            done = program("enqueue", "app.t", "--url", private_server.url)
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert done.returncode == 0
    assert done.stderr.count("allkeys-lru") == 1, done.stderr
