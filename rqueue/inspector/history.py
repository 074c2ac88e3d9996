"""The history read by people: forward from a moment, the last rows, or as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from typing import Any

import redis

from rqueue.errors import Undecodable
from rqueue.inspector.parts import Part, Parts
from rqueue.model.history_batch import damaged_row, read_entry
from rqueue.protocol.commands.history import (
    BEGIN,
    Entry,
    history_page,
    newest_entries,
    order,
)
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

PAGE = 100
"""Entries (batches of rows) that one command reads."""

Row = dict[str, Any]


def rows_of(entries: Iterable[Entry], queue: str) -> list[Row]:
    """The rows of some entries of a queue. An entry that cannot be read is one row, `damaged`."""
    rows: list[Row] = []
    for entry in entries:
        try:
            found = read_entry(entry.fields, queue)
        except Undecodable as error:
            found = [damaged_row(queue, entry.id, error)]
        for row in found:
            row["entry"] = entry.id
            rows.append(row)
    return rows


def read_history(
    client: redis.Redis, keys: QueueKeys, since: str = "-", until: str = "+"
) -> Iterator[Row]:
    """Rows from oldest to newest, as dicts with the columns of `rqueue.model.history_batch` and
    `entry`, the id of the stream entry. since, until: ids of entries or times in ms, inclusive; "("
    before one leaves it out."""
    while True:
        entries = execute(client, history_page(keys, since, until, count=PAGE))
        yield from rows_of(entries, keys.queue)
        if len(entries) < PAGE:
            return
        since = f"({entries[-1].id}"


def _written(row: Row) -> tuple[int, int]:
    return order(row["entry"])


def all_history(parts: Parts, since: str = "-", until: str = "+") -> Iterator[Row]:
    """`read_history` of all parts, by when the rows were written. Raises ConnectionLost where a
    shard cannot be asked."""

    def rows(part: Part) -> Iterator[Row]:
        with parts.named(part):
            yield from read_history(part.client, part.keys, since, until)

    if len(parts.found) == 1:
        return rows(parts.found[0])
    return merge(*map(rows, parts), key=_written)


def last_rows(parts: Parts, count: int) -> tuple[list[Row], dict[str, str]]:
    """The `count` last rows, oldest of them first, and of each part the id of the last entry there
    is ("0-0" when there is none): where a follower goes on."""
    found = parts.all(lambda part: _last_rows(part.client, part.keys, count))
    newest = {part.name: last for part, (_, last) in zip(parts, found, strict=True)}
    if len(found) == 1:
        return found[0][0], newest
    rows = sorted((row for some, _ in found for row in some), key=_written)
    return rows[max(0, len(rows) - count) :], newest


def _last_rows(client: redis.Redis, keys: QueueKeys, count: int) -> tuple[list[Row], str]:
    rows: list[Row] = []
    before, newest = "+", BEGIN
    while True:
        entries = execute(client, newest_entries(keys, before, count=PAGE))
        if entries and before == "+":
            newest = entries[0].id
        for entry in entries:
            if len(rows) >= count:
                break
            rows += reversed(rows_of([entry], keys.queue))
        if len(rows) >= count or len(entries) < PAGE:
            break
        before = f"({entries[-1].id}"
    rows = rows[:count]
    rows.reverse()
    return rows, newest


def seen_in(row: Row, after: Mapping[str, str]) -> dict[str, str]:
    """Where a follower goes on that has read up to this row."""
    return {**after, row["queue"]: row["entry"]}
