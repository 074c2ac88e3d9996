"""The history read by people: forward from a moment, the last rows, or as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import redis

from rqueue.model.history_batch import read_entry
from rqueue.protocol.commands.history import (
    BEGIN,
    Entry,
    history_news,
    history_page,
    newest_entries,
)
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

PAGE = 100
"""Entries (batches of rows) that one command reads."""

BLOCK_MS = 5000
"""How long one command of a follower waits; below the client's own time limit for an answer."""

Row = dict[str, Any]


def _rows(entries: Iterable[Entry], queue: str) -> list[Row]:
    rows: list[Row] = []
    for entry in entries:
        for row in read_entry(entry.fields, queue):
            row["entry"] = entry.id
            rows.append(row)
    return rows


def read_history(
    client: redis.Redis, keys: QueueKeys, since: str = "-", until: str = "+"
) -> Iterator[Row]:
    """Rows from oldest to newest, as dicts with the columns of `rqueue.model.history_batch` and
    `entry`, the id of the stream entry. since, until: ids of entries or times in ms, inclusive; "("
    before one leaves it out. Raises Undecodable for an entry of another version."""
    while True:
        entries = execute(client, history_page(keys, since, until, count=PAGE))
        yield from _rows(entries, keys.queue)
        if len(entries) < PAGE:
            return
        since = f"({entries[-1].id}"


def last_rows(client: redis.Redis, keys: QueueKeys, count: int) -> tuple[list[Row], str]:
    """The `count` last rows, oldest of them first, and the id of the last entry there is ("0-0"
    when there is none): where a follower goes on."""
    rows: list[Row] = []
    before, newest = "+", BEGIN
    while True:
        entries = execute(client, newest_entries(keys, before, count=PAGE))
        if entries and before == "+":
            newest = entries[0].id
        for entry in entries:
            if len(rows) >= count:
                break
            rows += reversed(_rows([entry], keys.queue))
        if len(rows) >= count or len(entries) < PAGE:
            break
        before = f"({entries[-1].id}"
    rows = rows[:count]
    rows.reverse()
    return rows, newest


def follow_history(client: redis.Redis, keys: QueueKeys, after: str = "$") -> Iterator[list[Row]]:
    """Rows as they are written, a list per answer of the server, for ever. Empty lists come while
    nothing happens, so that a caller can stop. after: id of the last entry seen; "$": from now."""
    if after == "$":
        newest = execute(client, newest_entries(keys))
        after = newest[0].id if newest else BEGIN
    while True:
        call = history_news({keys: after}, count=PAGE, block_ms=BLOCK_MS)
        entries = execute(client, call).get(keys.queue, [])
        if entries:
            after = entries[-1].id
        yield _rows(entries, keys.queue)
