"""Build the calls that read a queue's history: pages of entries, where it ends, what comes.

An entry is a batch of rows; `rqueue.model.history_batch` reads its fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rqueue.protocol.call import Arg, CommandCall, text
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import pairs

BEGIN = "0-0"
"""Stands before every entry."""

_TRIMMED = "history_trimmed"


class Entry(NamedTuple):
    """One entry, and its id."""

    id: str
    fields: dict[bytes, bytes]


class HistoryPart(NamedTuple):
    """Entries, and the last one that Redis had `trimmed` when they were read."""

    entries: list[Entry]
    trimmed: str


@dataclass(frozen=True, slots=True)
class HistoryEnds:
    """A queue's history at one moment: its `last` entry, how many `rows` were ever written to it;
    the last entry that Redis `trimmed`, and how many rows are `gone` with all those before it."""

    last: str = BEGIN
    rows: int = 0
    trimmed: str = BEGIN
    gone: int = 0

    def lost_after(self, entry: str) -> bool:
        """Whether entries that were written after `entry` are gone."""
        return order(self.trimmed) > order(entry)


def order(entry: str) -> tuple[int, int]:
    """The id of an entry as what ids are sorted by: ms since the epoch, and a number."""
    ms, _, number = entry.partition("-")
    return int(ms), int(number or 0)


def _entries(reply: Any) -> list[Entry]:
    return [Entry(text(id), pairs(fields)) for id, fields in reply]


def _read_entries(replies: Sequence[Any]) -> list[Entry]:
    return _entries(replies[0])


def _read_part(replies: Sequence[Any]) -> HistoryPart:
    found, trimmed = replies
    return HistoryPart(_entries(found), text(trimmed or BEGIN))


def _read_ends(replies: Sequence[Any]) -> HistoryEnds:
    newest, (trimmed, gone, rows) = replies
    trimmed, gone = text(trimmed or BEGIN), int(gone or 0)
    last = _entries(newest)[0].id if newest else trimmed
    return HistoryEnds(last, gone + int(rows or 0), trimmed, gone)


def history_page(
    keys: QueueKeys, since: str = "-", until: str = "+", *, count: int
) -> CommandCall[list[Entry]]:
    """Entries from oldest to newest, `count` at the most. since, until: ids of entries or times in
    ms, inclusive; "(" before one leaves it out."""
    command = ("XRANGE", keys.history, since, until, "COUNT", count)
    return CommandCall(keys.meta, [command], _read_entries)


def newest_entries(
    keys: QueueKeys, until: str = "+", *, count: int = 1
) -> CommandCall[list[Entry]]:
    """Entries from newest to oldest, `count` at the most. until: as of `history_page`."""
    command = ("XREVRANGE", keys.history, until, "-", "COUNT", count)
    return CommandCall(keys.meta, [command], _read_entries)


def history_part(
    keys: QueueKeys, after: str, until: str, *, count: int
) -> CommandCall[HistoryPart]:
    """Entries after one, up to another inclusive, `count` at the most, and what was trimmed. Redis
    trims from the oldest on: what it trimmed of the part is missing at its beginning."""
    command = ("XRANGE", keys.history, f"({after}", until, "COUNT", count)
    return CommandCall(keys.meta, [command, ("HGET", keys.meta, _TRIMMED)], _read_part)


def history_ends(keys: QueueKeys) -> CommandCall[HistoryEnds]:
    """Where the history begins and ends now; a queue that is not there has none."""
    return CommandCall(
        keys.meta,
        [
            ("XREVRANGE", keys.history, "+", "-", "COUNT", 1),
            ("HMGET", keys.meta, _TRIMMED, "history_gone", "history_rows"),
        ],
        _read_ends,
    )


def history_news(
    after: Mapping[QueueKeys, str], *, count: int, block_ms: int
) -> CommandCall[dict[str, list[Entry]]]:
    """Wait for entries behind the one that is named of each queue: the queues that have some, with
    `count` of each at the most; {} where none came in time. In a cluster, of one queue only."""
    queues = list(after)
    by_key = {keys.history: keys.queue for keys in queues}
    command: tuple[Arg, ...] = (
        *("XREAD", "COUNT", count, "BLOCK", block_ms, "STREAMS"),
        *by_key,
        *after.values(),
    )

    def read(replies: Sequence[Any]) -> dict[str, list[Entry]]:
        (answer,) = replies
        streams = answer.items() if isinstance(answer, Mapping) else answer or ()
        found = {}
        for key, entries in streams:
            # RESP3 nests the entries of a stream once more
            nested = entries and isinstance(entries[0], list) and isinstance(entries[0][0], tuple)
            found[by_key[text(key)]] = _entries(entries[0] if nested else entries)
        return found

    return CommandCall(queues[0].meta, [command], read)
