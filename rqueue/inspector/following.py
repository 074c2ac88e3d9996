"""The history as it is written: of one queue, or of the shards of one that is spread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from queue import SimpleQueue
from threading import Event, Thread

import redis

from rqueue.errors import RQueueError
from rqueue.inspector.history import Row, rows_of
from rqueue.inspector.parts import Part, Parts
from rqueue.protocol.commands.history import BEGIN, history_news, newest_entries
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.slots import slot_of
from rqueue.transport.redis_client import execute, is_cluster

__all__ = ["BLOCK_MS", "follow"]

PAGE = 100
"""Entries (batches of rows) of each queue that one command reads."""

BLOCK_MS = 5000
"""How long one command of a follower waits; below the client's own time limit for an answer."""

TURN_MS = 1000
"""How long, where several servers are waited for: a follower that ends waits for them all."""

Table = Callable[[], Parts]


def follow(parts: Parts, after: Mapping[str, str] | None, again: Table) -> Iterator[list[Row]]:
    """Rows as they are written, a list per answer of a server, for ever. Empty lists come while
    nothing happens, so that a caller can stop.

    after: of each queue the last entry seen; of one that is not named, all; None: from now. again:
    finds the parts anew: shards that open are followed too. Raises the server errors; of a queue
    that is spread ConnectionLost, which names the shard.
    """
    seen = dict(after) if after is not None else _newest(parts)
    while True:
        groups = _together(parts)
        if len(groups) == 1:
            rows = _news(groups[0], seen, BLOCK_MS)
            while rows:
                yield rows
                rows = _news(groups[0], seen, BLOCK_MS)
        else:
            yield from _until_quiet(parts, groups, seen)
        yield []
        if parts.table is not None:
            parts = again()


def _newest(parts: Parts) -> dict[str, str]:
    found = parts.all(lambda part: execute(part.client, newest_entries(part.keys)))
    return {
        part.name: newest[0].id if newest else BEGIN
        for part, newest in zip(parts, found, strict=True)
    }


def _together(parts: Parts) -> list[list[Part]]:
    """Parts whose histories one command may wait for: those of one server, or one slot."""

    def where(part: Part) -> tuple[int, int]:
        slot = slot_of(part.keys.meta) if is_cluster(part.client) else 0
        return id(part.client), slot

    return [list(group) for _, group in groupby(sorted(parts, key=where), key=where)]


def _news(group: list[Part], seen: dict[str, str], block_ms: int) -> list[Row]:
    """Rows that these parts have got, waited for; `seen` knows of them then."""
    client: redis.Redis = group[0].client
    streams: dict[QueueKeys, str] = {part.keys: seen.get(part.name, BEGIN) for part in group}
    found = execute(client, history_news(streams, count=PAGE, block_ms=block_ms))
    rows: list[Row] = []
    for name, entries in found.items():
        if entries:
            seen[name] = entries[-1].id
            rows += rows_of(entries, name)
    return rows


def _until_quiet(
    parts: Parts, groups: list[list[Part]], seen: dict[str, str]
) -> Iterator[list[Row]]:
    """What several servers say, until none of them has said anything for a while. Each is waited
    for by a thread of its own."""
    said: SimpleQueue[list[Row] | RQueueError] = SimpleQueue()
    over = Event()

    def listen(group: list[Part]) -> None:
        quiet = 0
        while not over.is_set() and quiet < BLOCK_MS:
            try:
                with parts.named(group[0]):
                    rows = _news(group, seen, TURN_MS)
            except RQueueError as error:
                said.put(error)
                return
            quiet = 0 if rows else quiet + TURN_MS
            if rows:
                said.put(rows)
        said.put([])

    threads = [Thread(target=listen, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    try:
        left = len(threads)
        while left:
            one = said.get()
            if isinstance(one, RQueueError):
                raise one
            if one:
                yield one
            else:
                left -= 1
                # what one thread has not heard of for long, the others need not wait out
                over.set()
    finally:
        over.set()
        for thread in threads:
            thread.join()
