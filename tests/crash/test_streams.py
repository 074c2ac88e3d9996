"""Producers of streams are killed, in programs of their own and inside of jobs, and so are workers:
every member comes once, and what waits for them runs once, behind all of them."""

import os
import signal
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
from tests.support.forked_program import PATH, ForkedProgram
from tests.workers.pools import eventually

pytestmark = pytest.mark.timeout(180)


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


def producer(field: Field, members: int, log: Path, *end: str) -> ForkedProgram:
    """A program that enqueues them; `log` is where it writes."""
    arguments = [field.url, field.queue.name, f"{members}", *end]
    environment = {**os.environ, "PYTHONPATH": PATH}
    with log.open("ab") as output:
        return ForkedProgram(
            "tests.crash.stream_producer", *arguments, output=output, environment=environment
        )


def came_last(field: Field, members: int) -> None:
    """All members have run, and behind them, once, what waited for them."""
    ends = [id_ for what, _, id_ in field.lines() if what == "end"]
    assert ends.count("w") == 1
    assert len({*ends[: ends.index("w")]} & {f"w.{n}" for n in range(members)}) == members


@pytest.mark.parametrize(
    "members",
    [1500, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(900)])],
)
def test_producers_killed_again_and_again(field: Field, members: int, tmp_path: Path) -> None:
    log = tmp_path / "producers.log"
    field.pool()
    field.ids = ["w", *(f"w.{n}" for n in range(members))]
    for share in (0.02, 0.2, 0.4, 0.6, 0.8):
        one = producer(field, members, log)
        eventually(lambda share=share: joined(field) >= share * members, field.logs)
        one.kill()
        one.wait()
        if share in (0.2, 0.6):
            os.kill(field.someone(), signal.SIGKILL)
    assert producer(field, members, log).wait() == 0, log.read_text()
    eventually(lambda: field.queue.job("w").state().ended, field.logs)
    field.settled()
    came_last(field, members)


@pytest.mark.parametrize(
    "members",
    [3000, pytest.param(30_000, marks=[pytest.mark.long, pytest.mark.timeout(900)])],
)
def test_workers_killed_that_produce(field: Field, members: int) -> None:
    """A job that enqueues a stream is delivered again, and goes on with it."""
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


def test_a_producer_that_nobody_replaces(field: Field, tmp_path: Path) -> None:
    """What it has enqueued runs, and what waits for that ends."""
    log = tmp_path / "producer.log"
    one = producer(field, 600, log, "hang")
    eventually(lambda: log.read_text() == "drawn\n", log.read_text)
    one.kill()
    one.wait()
    field.pool()
    members = joined(field)
    assert members == 500, "two steps of some hundred, and a part of one that died with it"
    eventually(lambda: field.ended() == members, field.logs)
    assert field.queue.job("w").state() == "deferred"
    move_time(field.queue, LOST_MS)
    with pytest.raises(ProducerLost, match="with 500 members enqueued"):
        field.queue.job("w").result(30)
