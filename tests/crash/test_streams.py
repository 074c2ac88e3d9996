"""Producers of streams are killed, in programs of their own and inside of jobs, and so are workers:
every member comes once, and what waits for them runs once, behind all of them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rqueue import Options
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ProducerLost
from rqueue.model.parents import LOST_MS
from rqueue.protocol.commands.streams import read_stream
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.crash.test_under_load import Field
from tests.workers.pools import ROOT, eventually

pytestmark = pytest.mark.timeout(180)

PRODUCER = """
import sys
from rqueue import Queue, stream
from tests.crash.app import step

url, queue, members, end = sys.argv[1:]
def drawn():
    yield from (step.si(0.5) for _ in range(int(members)))
    if end == "hang":
        print("drawn", flush=True)
        sys.stdin.read()
Queue(queue, url).enqueue_workflow(stream(drawn(), step.si(0)), id="w")
"""


@pytest.fixture
def field(server: EmbeddedRedis, queue_name: str, tmp_path: Path) -> Iterator[Field]:
    field = Field(server.url, queue_name, tmp_path)
    yield field
    field.close()


def joined(field: Field) -> int:
    """How many members have come; all of them where the stream is over."""
    read = execute(field.queue.redis, read_stream(field.queue.keys, "w"))
    if read.joined is None:
        return sys.maxsize if read.value or read.record else 0
    return read.joined


def producer(field: Field, members: int, end: str = "") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PRODUCER, field.url, field.queue.name, f"{members}", end]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def came_last(field: Field, members: int) -> None:
    """All members have run, and behind them, once, what waited for them."""
    ends = [id_ for what, _, id_ in field.lines() if what == "end"]
    assert ends.count("w") == 1
    assert len({*ends[: ends.index("w")]} & {f"w.{n}" for n in range(members)}) == members


@pytest.mark.parametrize(
    "members",
    [3000, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(900)])],
)
def test_producers_killed_again_and_again(field: Field, members: int) -> None:
    field.pool()
    field.ids = ["w", *(f"w.{n}" for n in range(members))]
    for share in (0.02, 0.2, 0.4, 0.6, 0.8):
        one = producer(field, members)
        eventually(lambda share=share: joined(field) >= share * members, field.logs)
        one.kill()
        one.communicate()
        if share in (0.2, 0.6):
            os.kill(field.someone(), signal.SIGKILL)
    last = producer(field, members)
    last.communicate()
    assert last.returncode == 0
    eventually(lambda: field.queue.job("w").state().ended, field.logs)
    field.settled()
    came_last(field, members)


def test_workers_killed_that_produce(field: Field) -> None:
    """A job that enqueues a stream is delivered again, and goes on with it."""
    members = 3000
    field.pool()
    options = Options(id="p", max_crashes=100)
    field.queue.send("crash.produce", ["w", members, 0.5], options=options)
    field.ids = ["p", "w", *(f"w.{n}" for n in range(members))]

    def at_it() -> int:
        began = [pid for what, pid, id_ in field.lines() if what == "begin" and id_ == "p"]
        return began[-1] if began else 0

    for _ in range(3):
        before = at_it()
        eventually(lambda before=before: at_it() != before, field.logs)
        os.kill(at_it(), signal.SIGKILL)
    eventually(lambda: field.queue.job("w").state().ended, field.logs)
    field.settled()
    came_last(field, members)


def test_a_producer_that_nobody_replaces(field: Field) -> None:
    """What it has enqueued runs, and what waits for that ends."""
    one = producer(field, 600, "hang")
    assert one.stdout is not None
    assert one.stdout.readline() == b"drawn\n"
    one.kill()
    one.communicate()
    field.pool()
    members = joined(field)
    assert members == 500, "two steps of some hundred, and a part of one that died with it"
    eventually(lambda: field.ended() == members, field.logs)
    assert field.queue.job("w").state() == "deferred"
    move_time(field.queue, LOST_MS)
    with pytest.raises(ProducerLost, match="with 500 members enqueued"):
        field.queue.job("w").result(30)
