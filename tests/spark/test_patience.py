"""Reads wait for a Redis that is away, when they are planned and while they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import redis

from rqueue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConnectionLost
from rqueue.protocol.keys import QueueKeys
from rqueue.spark import patience
from rqueue.spark.history.source import HistoryReader
from rqueue.spark.history.stream import HistoryStreamReader
from rqueue.spark.jobs.source import JobsReader
from rqueue.spark.options import HistoryRead, HistoryStream, JobsRead, read_options
from rqueue.spark.schemas import HISTORY, JOBS
from tests.support.history import write

ROWS = 40


class Outage:
    """Kills a server, and starts it again as soon as a call has failed and waits."""

    def __init__(self, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits = 0
        self.over = True
        self._server = server
        real = patience.backoff

        def backoff(attempt: int) -> float:
            self.waits += 1
            if self.over and attempt == 1:
                server.start()
            return real(attempt)

        monkeypatch.setattr(patience, "backoff", backoff)

    def begin(self) -> None:
        self._server.kill()


@pytest.fixture
def lone(make_server: Callable[..., EmbeddedRedis]) -> EmbeddedRedis:
    """A server of this test alone, which loses nothing when it is killed."""
    server = make_server(config={"appendfsync": "always"})
    with redis.Redis.from_url(server.url) as client, Queue("q", server.url) as queue:
        write(client, QueueKeys("q"), ROWS // 10, 10)
        queue.enqueue_many(Call("t", (n,)) for n in range(ROWS))
    return server


Plan = Callable[[], tuple[Any, Sequence[Any]]]


def plans(url: str, wait: str) -> dict[str, Plan]:
    """What Spark does to plan a read of each source: the reader, and its partitions."""
    given = {"url": url, "queues": "q", "patience": wait}

    def history() -> tuple[Any, Sequence[Any]]:
        made = HistoryReader(read_options(HistoryRead, {**given, "partitionRows": "20"}), HISTORY)
        return made, made.partitions()

    def stream() -> tuple[Any, Sequence[Any]]:
        made = HistoryStreamReader(read_options(HistoryStream, given), HISTORY)
        start = made.initialOffset()
        found = made, made.partitions(start, made.latestOffset(start))
        made.stop()
        return found

    def jobs() -> tuple[Any, Sequence[Any]]:
        small = {"partitionRows": "20", "pageSize": "5"}
        made = JobsReader(read_options(JobsRead, {**given, **small}), JOBS)
        return made, made.partitions()

    return {"history": history, "stream": stream, "jobs": jobs}


@pytest.mark.parametrize("source", ["history", "stream", "jobs"])
@pytest.mark.parametrize("moment", ["planning", "the first row", "a later partition"])
def test_a_read_outlives_a_restart(
    lone: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, source: str, moment: str
) -> None:
    outage = Outage(lone, monkeypatch)
    if moment == "planning":
        outage.begin()
    made, parts = plans(lone.url, "1m")[source]()
    if moment == "the first row":
        outage.begin()
    rows = []
    for number, part in enumerate(parts):
        for batch in made.read(part):
            rows += batch["id"].to_pylist()
        if moment == "a later partition" and number == 0 and len(parts) > 1:
            outage.begin()
    assert len(rows) == len(set(rows)) == ROWS
    assert outage.waits > 0 or len(parts) == 1


@pytest.mark.parametrize("source", ["history", "stream", "jobs"])
def test_patience_ends(lone: EmbeddedRedis, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outage = Outage(lone, monkeypatch)
    outage.over = False
    made, (part, *_) = plans(lone.url, "200ms")[source]()
    outage.begin()
    with pytest.raises(ConnectionLost):
        list(made.read(part))
    with pytest.raises(ConnectionLost):
        plans(lone.url, "200ms")[source]()
