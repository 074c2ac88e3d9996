"""Pools as real processes, and what their tests wait with: signals of Redis and of the kernel."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.job import Header, parse_value
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.support.forked_program import PATH, ForkedProgram
from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
APP = "tests.workers.supervisor_app"


class Pool:
    """A pool that was started as a program of its own; its log goes to a file. tell: the server
    over which its jobs speak to the test."""

    def __init__(self, url: str, log: Path, *, tell: str = "", **options: Any) -> None:
        options = {"url": url, "app": [APP], "processes": 1, "lease": "30s", **options}
        self._log = log
        with log.open("ab") as output:
            self._process = ForkedProgram(
                "tests.workers.supervisor_pool",
                json.dumps(options),
                output=output,
                environment={
                    **os.environ,
                    "TEST_URL": tell or url,
                    "CHILD_TEST_URL": tell or url,
                    "PYTHONPATH": PATH,
                },
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def dead(self) -> bool:
        """Whether it ended."""
        return self._process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end; its exit code."""
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the pool did not end; its log:\n{self.log}") from None

    def drained(self) -> int:
        """End it with SIGTERM; its exit code."""
        self.send(signal.SIGTERM)
        return self.ended()

    def said(self, text: str, times: int = 1) -> None:
        """Wait until its log says something: the log has no signal."""
        eventually(lambda: self.log.count(text) >= times, lambda: f"no {text!r} in:\n{self.log}")

    def clean_up(self) -> None:
        """Kill what a failed test left; its workers too, which may hear nothing (`deaf`)."""
        if self._process.poll() is None:
            workers = psutil.Process(self.pid).children(recursive=True)
            for process in (psutil.Process(self.pid), *workers):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()


@pytest.fixture
def make_pool(
    server: EmbeddedRedis, queue_name: str, tmp_path: Path
) -> Iterator[Callable[..., Pool]]:
    """Starts pools as programs: options as in a pool file, see `Pool`."""
    made: list[Pool] = []

    def make(url: str = "", **options: object) -> Pool:
        options.setdefault("queues", [queue_name])
        made.append(Pool(url or server.url, tmp_path / f"pool{len(made)}.log", **options))
        return made[-1]

    yield make
    for pool in made:
        pool.clean_up()


def eventually(
    condition: Callable[[], bool], problem: Callable[[], str] = lambda: "it did not happen"
) -> None:
    """Look again and again, where nothing tells when."""
    until = time.monotonic() + PATIENCE
    pause = select.poll()
    while not condition():
        assert time.monotonic() < until, problem()
        pause.poll(10)


def pop(client: redis.Redis, key: str) -> str:
    """Wait for the next element of a list."""
    for _ in range(round(PATIENCE / 4)):  # the client's own timeout is shorter than our patience
        found: Any = client.blpop([key], 4)
        if found is not None:
            return str(found[1].decode())
    raise AssertionError(f"nothing came in {key}")


def started(client: redis.Redis, key: str) -> int:
    """Wait until a `hold` job runs; the process that runs it."""
    return int(pop(client, f"{key}:started"))


def noted(queue: Queue, id_: str) -> None:
    """Wait until the supervisor has noted that this job runs: the end of a lease charges it."""
    client = queue.redis

    def known() -> bool:
        names: Any = client.zrange(queue.keys.consumers, 0, -1)
        return any(client.hexists(queue.keys.running(name.decode()), id_) for name in names)

    eventually(known)


def go(client: redis.Redis, key: str, answer: str = "done") -> None:
    """Let a `hold` job return."""
    client.rpush(f"{key}:go", answer)


def header(queue: Queue, id_: str) -> Header:
    """The stored header of a job that has not ended well."""
    return parse_value(execute(queue.redis, commands.show(queue.keys, id_)).value)[0]


def causes(queue: Queue, id_: str) -> list[tuple[str, str]]:
    """Kind and type of the errors of a job's attempts so far."""
    errors = execute(queue.redis, commands.show(queue.keys, id_)).errors.splitlines()
    return [(error["kind"], error["type"]) for error in map(orjson.loads, errors)]


class Watched:
    """A process that is not our child: its end can be waited for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def ended(self) -> None:
        try:
            ready, _, _ = select.select([self._handle], (), (), PATIENCE)
            assert ready, f"process {self.pid} did not end"
        finally:
            os.close(self._handle)
