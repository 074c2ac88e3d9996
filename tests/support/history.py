"""History to be read by tests: written through real settles, or in bulk as the script writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import redis

from rqueue.client._sync.queue import Queue
from rqueue.model.history_batch import NAMES, pack, read_entry
from rqueue.protocol.job_packer import Call
from rqueue.protocol.keys import QueueKeys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T0 = 1_700_000_000_000


def settle(queue: Queue, rows: int, *, refuse: Sequence[int] = (), **columns: Any) -> str:
    """Run so many jobs through a consumer; one entry. refuse: rows of jobs that it does not hold.
    Returns the entry's id."""
    queue.enqueue_many([Call("t", [number]) for number in range(rows - len(refuse))])
    consumer = queue.consumer(jobs=max(1, rows), renew=False).register()
    held = [job.id for job in consumer.pull()]
    ids = [f"refused-{row}" if row in refuse else held.pop(0) for row in range(rows)]
    defaults = {
        "task": "t", "queue": queue.name, "level": 4, "outcome": "ack", "worker": "w-1",
        "enqueued": T0, "acquired": T0 + 5, "started": [T0 + 10 * n for n in range(rows)],
        "finished": [T0 + 10 * n + 7 for n in range(rows)], "body_size": 12,
    }  # fmt: skip
    consumer.settle(ack=ids, batch=pack({"id": ids, **defaults, **columns}), rows=rows)
    consumer.close()
    newest = cast("Any", queue.redis.xrevrange(queue.keys.history, count=1))
    entry: str = newest[0][0].decode()
    return entry


def write(
    client: redis.Redis, keys: QueueKeys, entries: int, rows: int = 100, first: int = 0
) -> list[str]:
    """Write entries of that many rows each, as the settle script does; returns their ids. Row i of
    all has the id `job-<i>`, from `first` on."""
    with client.pipeline(transaction=False) as pipe:
        for entry in range(entries):
            numbers = range(first + entry * rows, first + (entry + 1) * rows)
            pipe.xadd(keys.history, {b"n": rows, b"b": pack(columns_of(numbers))})
        pipe.hincrby(keys.meta, "history_rows", entries * rows)
        pipe.hset(keys.meta, "v", "1")
        replies: list[Any] = pipe.execute()
    return [id.decode() for id in replies[:entries]]


def columns_of(numbers: Sequence[int]) -> dict[str, Any]:
    return {
        "id": [f"job-{number}" for number in numbers],
        "task": "mail.send",
        "level": 4,
        "outcome": ["retry" if number % 10 == 0 else "ack" for number in numbers],
        "attempts": [number % 3 for number in numbers],
        "enqueued": [T0 + number for number in numbers],
        "acquired": [T0 + number + 20 for number in numbers],
        "started": [T0 + number + 30 for number in numbers],
        "finished": [T0 + number + 35 for number in numbers],
        "worker": "w-1",
        "error": ["ValueError" if number % 10 == 0 else "" for number in numbers],
        "body_size": 77,
    }


def trim(client: redis.Redis, keys: QueueKeys, entries: int) -> str:
    """Trim the oldest entries, as the scripts do; returns the id of the last of them."""
    found = cast("Any", client.xrange(keys.history, count=entries))
    gone = sum(int(fields[b"n"]) for _, fields in found)
    last: str = found[-1][0].decode()
    with client.pipeline(transaction=True) as pipe:
        pipe.xdel(keys.history, *[id for id, _ in found])
        pipe.hincrby(keys.meta, "history_rows", -gone)
        pipe.hset(keys.meta, "history_trimmed", last)
        pipe.hincrby(keys.meta, "history_gone", gone)
        pipe.execute()
    return last


def plain_rows(client: redis.Redis, keys: QueueKeys) -> list[Mapping[str, Any]]:
    """The rows by the package's own reader, which knows no Spark; `entry` added."""
    rows = []
    for id, fields in cast("Any", client.xrange(keys.history)):
        for row in read_entry(fields, keys.queue):
            rows.append({"cause": None, **row, "entry": id.decode(), "queue": keys.queue})
    assert all(name in row for row in rows for name in NAMES)
    return rows


def archived_once(client: redis.Redis, queues: Iterable[str], lake: DataFrame) -> int:
    """A lake holds the rows of these queues' history, each once; how many there are."""
    expected = Counter(
        (queue, row["entry"], row["id"])
        for queue in queues
        for row in plain_rows(client, QueueKeys(queue))
    )
    assert Counter(tuple(row) for row in lake.select("queue", "entry", "id").collect()) == expected
    assert lake.select("queue", "entry", "row").distinct().count() == expected.total()
    return expected.total()
