"""The history read by people: forward from a moment, the last rows, or as it is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import redis

from rqueue.model.history_batch import read_entry
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import translated

PAGE = 100
"""Entries (batches of rows) that one command reads."""

BLOCK_MS = 5000
"""How long one command of a follower waits; below the client's own time limit for an answer."""

Row = dict[str, Any]


def _rows(entries: Any, queue: str) -> Iterator[Row]:
    for entry_id, fields in entries:
        for row in read_entry(fields, queue):
            row["entry"] = entry_id.decode()
            yield row


def read_history(
    client: redis.Redis, keys: QueueKeys, since: str = "-", until: str = "+"
) -> Iterator[Row]:
    """Rows from oldest to newest, as dicts with the columns of `rqueue.model.history_batch` and
    `entry`, the id of the stream entry. since, until: ids of entries or times in ms, inclusive; "("
    before one leaves it out. Raises Undecodable for an entry of another version."""
    with translated(client, queue=keys.queue):
        while True:
            entries = cast("list[Any]", client.xrange(keys.history, since, until, count=PAGE))
            yield from _rows(entries, keys.queue)
            if len(entries) < PAGE:
                return
            since = "(" + entries[-1][0].decode()


def last_rows(client: redis.Redis, keys: QueueKeys, count: int) -> tuple[list[Row], str]:
    """The `count` last rows, oldest of them first, and the id of the last entry there is ("0-0"
    when there is none): where a follower goes on."""
    rows: list[Row] = []
    before, newest = "+", "0-0"
    with translated(client, queue=keys.queue):
        while True:
            entries = cast("list[Any]", client.xrevrange(keys.history, before, "-", count=PAGE))
            if entries and before == "+":
                newest = entries[0][0].decode()
            for entry in entries:
                if len(rows) >= count:
                    break
                rows += reversed(list(_rows([entry], keys.queue)))
            if len(rows) >= count or len(entries) < PAGE:
                break
            before = "(" + entries[-1][0].decode()
    rows = rows[:count]
    rows.reverse()
    return rows, newest


def follow_history(client: redis.Redis, keys: QueueKeys, after: str = "$") -> Iterator[list[Row]]:
    """Rows as they are written, a list per answer of the server, for ever. Empty lists come while
    nothing happens, so that a caller can stop. after: id of the last entry seen; "$": from now."""
    with translated(client, queue=keys.queue):
        if after == "$":
            newest = cast("list[Any]", client.xrevrange(keys.history, count=1))
            after = newest[0][0].decode() if newest else "0-0"
        while True:
            answer = cast("Any", client.xread({keys.history: after}, count=PAGE, block=BLOCK_MS))
            streams = answer.items() if isinstance(answer, dict) else answer or ()
            rows: list[Row] = []
            for _, found in streams:
                # RESP3 nests the entries of a stream once more
                entries = found[0] if found and isinstance(found[0], list) else found
                rows += _rows(entries, keys.queue)
                if entries:
                    after = entries[-1][0].decode()
            yield rows
