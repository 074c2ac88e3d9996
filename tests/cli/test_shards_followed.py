"""What the command line says of all shards as it comes, a shard that opens meanwhile among them."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.tasks.options import Options
from tests.cli.looking import Read, Run


@pytest.fixture
def spread(server: EmbeddedRedis, private_server: EmbeddedRedis, queue: Queue) -> Iterator[None]:
    """Of two shards the second one is on another server."""
    with ShardedQueue(queue.name, server.url, shards=1) as made:
        made.table()
        made.open(place=private_server.url, order=False)
        made.configure(alert_depth=2)
        yield


@contextmanager
def follower(url: str, *command: str) -> Iterator[Iterator[dict[str, Any]]]:
    """The lines of a command that goes on."""
    arguments = [sys.executable, "-m", "rqueue.cli", "--url", url, *command, "-f", "--json"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        yield map(json.loads, process.stdout)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
        assert process.wait() == 130 and "Traceback" not in said, said


def test_jobs_of_all_shards_are_browsed_as_they_come(
    server: EmbeddedRedis, queue: Queue, spread: None
) -> None:
    for number in range(6):
        queue.send("t", options=Options(id=f"j{number}"))
    with follower(server.url, "browse", queue.name) as lines:
        first = [next(lines) for _ in range(6)]
        assert {job["id"] for job in first} == {f"j{number}" for number in range(6)}
        with ShardedQueue(queue.name, server.url) as made:
            made.open(order=False)
            for number in range(6, 30):
                made.send("t", options=Options(id=f"j{number}"))
        later = [next(lines) for _ in range(24)]
        assert {job["id"] for job in later} == {f"j{number}" for number in range(6, 30)}
        assert {job["queue"] for job in later} == {f"{queue.name}~{number}" for number in range(3)}


def test_alerts_of_all_shards_name_them(
    server: EmbeddedRedis, queue: Queue, spread: None, run: Run, read: Read
) -> None:
    for number in range(12):
        queue.send("t", options=Options(key=f"k{number}"))
    shards = {f"{queue.name}~0", f"{queue.name}~1"}
    said = run("alerts", queue.name).stdout
    assert all(f"  {shard}  2 jobs  threshold 2" in said for shard in shards)
    with follower(server.url, "alerts", queue.name) as lines:
        assert {next(lines)["queue"] for _ in range(2)} == shards
        with ShardedQueue(queue.name, server.url) as made:
            made.cancel_all()
            for number in range(12):
                made.send("t", options=Options(key=f"k{number}"))
        assert {next(lines)["queue"] for _ in range(2)} == shards


def test_a_limit_ends_it(run: Run, queue: Queue, spread: None) -> None:
    for number in range(6):
        queue.send("t", options=Options(id=f"j{number}"))
    said = run("browse", queue.name, "-f", "-n", "4").stdout
    assert said.splitlines()[0].endswith("shard") and len(said.splitlines()) == 5
