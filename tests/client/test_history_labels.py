"""What history keeps of labels, by each writer of rows; and the rows of consumers of one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector import Inspector
from rqueue.model.envelope import pack
from rqueue.model.history_batch import pack as history_pack
from rqueue.model.history_batch import read_entry, unpack
from rqueue.model.labels import labels_of, may_have_labels
from rqueue.tasks.options import Options
from rqueue_workers.worker.history_rows import pack_rows
from tests.support.patience import PATIENCE

LABELS = {"tenant": "acme é", "gpu": True, "size": 42}
TEXTS = {"tenant": "acme é", "gpu": "true", "size": "42"}


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


def rows_of(queue: Queue) -> list[dict[str, Any]]:
    entries: Any = queue.redis.xrange(queue.keys.history)
    return [row for _, fields in entries for row in read_entry(fields, queue.name)]


def body(**opts: Any) -> bytes:
    return pack("t", (1, '"labels":{"a":"b"}'), {"labels": {"x": "y"}}, opts)


def test_what_a_row_keeps() -> None:
    value = b"7,8;" + body(labels=LABELS, headers={"customer": "c1", "tenant": "h", "trace": "t"})
    assert labels_of(value) == TEXTS
    assert labels_of(value, ("customer", "tenant")) == {"customer": "c1", "tenant": "acme é"}
    assert labels_of(value, ("*", "customer")) == {"customer": "c1", **TEXTS}
    assert labels_of(value, ()) == labels_of(b"7,8;" + body()) == {}
    assert labels_of(b"rubbish" + value) == labels_of(b"") == {}
    many = labels_of(body(labels={f"n{i}": "x" * 1000 for i in range(100)}))
    assert len(many) == 16 and {len(text) for text in many.values()} == {200}


def test_plain_jobs_are_not_looked_into() -> None:
    plain = [b"1,2;" + pack("t"), b"1,2;" + pack("t", (1, {"labels": 1}))]
    assert not may_have_labels(plain)
    assert may_have_labels([*plain, b"1,2;" + pack("t", opts={"labels": {"a": "b"}})])
    assert may_have_labels([b""])


def test_rows_of_a_worker() -> None:
    """Those without labels are packed as they always were."""

    def packed(*bodies: bytes, **more: Any) -> bytes:
        rows = [
            (b"%014d" % number, b"1,5;" + text, b"1,5", "t", 10, 1.0, 2.0)
            for number, text in enumerate(bodies)
        ]
        return pack_rows("q", "w", 0.0, rows, [], [], **more)

    for count in (1, 3, 8):
        plain, labelled = [pack("t", (1,))] * count, [body(labels=LABELS)] * count
        assert packed(*plain) == packed(*plain, labels=())
        assert [row["labels"] for row in unpack(packed(*plain))] == [{}] * count
        assert [row["labels"] for row in unpack(packed(*labelled))] == [TEXTS] * count
        mixed = [row["labels"] for row in unpack(packed(*labelled, *plain, bodies="all"))]
        assert mixed == [TEXTS] * count + [{}] * count
        kept = unpack(packed(*labelled, labels=("tenant",)))
        assert [row["labels"] for row in kept] == [{"tenant": "acme é"}] * count
    # dictionary-coded: a thousand jobs of one tenant cost no more than one
    one, thousand = (len(packed(*[body(labels=LABELS)] * n)) for n in (10, 1000))
    assert (thousand - one) / 990 < 6


@pytest.mark.each_server
def test_rows_that_scripts_write(queue: Queue) -> None:
    queue.send("t", (1, '"labels":{"a":"b"}'), {}, Options(labels=LABELS)).cancel()
    queue.send("t", (), {"labels": {"x": "y"}}).cancel()
    queue.send("t", (), {}, Options(headers={"labels": '{"a":1}'}, id="odd")).cancel()
    long = {"é" * 3: "é" * 150, "b": "x" * 199 + "é", "c": "x" * 200}
    queue.send("t", (), {}, Options(labels=long)).cancel()
    first, second, third, fourth = (row["labels"] for row in rows_of(queue))
    assert (first, second, third) == (TEXTS, {}, {})
    assert fourth == {"é" * 3: "é" * 100, "b": "x" * 199, "c": "x" * 200}


@pytest.mark.each_server
def test_what_is_no_text_stays_readable(queue: Queue) -> None:
    """A damaged envelope does not make the whole entry unreadable."""
    job = queue.send("t", (), {}, Options(labels={"tenant": "acme"}))
    value = queue.redis.hget(queue.keys.jobs, job.id)
    assert isinstance(value, bytes)
    queue.redis.hset(queue.keys.jobs, job.id, value.replace(b"acme", b"ac\xffe"))
    job.cancel()
    assert [row["labels"] for row in rows_of(queue)] == [{"tenant": "ac\ufffde"}]


def test_the_newest_rows_with_their_labels(queue: Queue) -> None:
    queue.send("t", (), {}, Options(labels=LABELS)).cancel()
    with Inspector(queue.settings.url) as inspector:
        [row], _ = inspector.last_rows(queue.name, 5)
    assert row["labels"] == TEXTS


def facts_of(queue: Queue) -> list[tuple[Any, ...]]:
    names = ("task", "outcome", "level", "attempts", "error", "worker")
    return [tuple(row[name] for name in names) for row in rows_of(queue)]


@pytest.mark.each_server
def test_a_consumer_of_ones_own_leaves_history(queue: Queue) -> None:
    for task in ("a", "b", "c", "d"):
        queue.send(task, (1,), {}, Options(priority=5, labels={"tenant": task}))
    with queue.consumer(jobs=10, name="mine") as consumer:
        first, second, third, fourth = consumer.pull()
        consumer.settle(ack=[first.id], done=[(second, {"x": 1})], pull=True)
        consumer.retry(third, error={"type": "ValueError", "message": "no"})
        [third] = consumer.pull()
        consumer.reject(third, "never", kind="refused")
        consumer.release(fourth)
    assert facts_of(queue) == [
        ("a", "ack", 5, 0, "", "mine"),
        ("b", "ack", 5, 0, "", "mine"),
        ("c", "retry", 5, 0, "ValueError", "mine"),
        ("c", "dead", 5, 1, "refused", "mine"),
    ]
    rows = rows_of(queue)
    assert [row["labels"]["tenant"] for row in rows] == ["a", "b", "c", "c"]
    assert rows[1]["result_size"] == len('{"x":1}')
    for row in rows:
        assert row["enqueued"] <= row["acquired"] == row["started"] <= row["finished"]
        assert row["finished"] - row["enqueued"] < 60_000
    counts: Any = queue.redis.hget(queue.keys.meta, "history_rows")
    assert int(counts) == 4


def test_one_that_was_handed_over_and_one_that_is_gone(queue: Queue) -> None:
    with queue.consumer(jobs=5) as consumer:
        assert consumer.pull() == []
        handed, taken = queue.send("handed"), queue.send("taken")
        jobs = [wake.job for wake in consumer.wait(PATIENCE)] + consumer.pull()
        ids = {job.id for job in jobs if job is not None}
        assert ids == {handed.id, taken.id}
        assert taken.cancel()
        consumer.settle(ack=[handed.id, taken.id, "stranger"])
        assert set(consumer.refused) == {taken.id, "stranger"}
    assert [(row["task"], row["outcome"]) for row in rows_of(queue)] == [
        ("taken", "cancelled"), ("handed", "ack"),
    ]  # fmt: skip


def test_rows_of_its_own_and_none(queue: Queue) -> None:
    for _ in range(2):
        queue.send("t")
    with queue.consumer(jobs=1, history=False) as consumer:
        consumer.settle(ack=consumer.pull())
    assert rows_of(queue) == []
    with queue.consumer(jobs=1) as consumer:
        [job] = consumer.pull()
        consumer.settle(ack=[job], batch=history_pack({"id": [job.id], "task": "own"}), rows=1)
    assert [row["task"] for row in rows_of(queue)] == ["own"]


async def settled_by_asyncio(url: str, name: str) -> None:
    async with AsyncQueue(name, url) as queue:
        await queue.send("t", (), {}, Options(labels={"tenant": "acme"}))
        async with queue.consumer(jobs=10, name="loop") as consumer:
            async for jobs in consumer.drain():
                await consumer.settle(ack=jobs)


def test_a_consumer_of_asyncio_leaves_history(queue: Queue) -> None:
    asyncio.run(settled_by_asyncio(queue.settings.url or "", queue.name))
    [row] = rows_of(queue)
    assert (row["task"], row["worker"], row["labels"]) == ("t", "loop", {"tenant": "acme"})
