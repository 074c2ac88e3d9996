"""Build the calls that look at the places where jobs are: how many are there, what is where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from rqueue.protocol.call import Arg, CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_text, scores

ListKind = Literal["due", "ready"]
"""Which of a level's two lists: the promoted jobs, which stand first, or the others."""


class PlaceSizes(NamedTuple):
    """How many jobs are stored, and how many elements all places have together."""

    stored: int
    placed: int


def _read_sizes(replies: Sequence[Any]) -> PlaceSizes:
    stored, *placed = map(int, replies)
    return PlaceSizes(stored, sum(placed))


def _read_count(replies: Sequence[Any]) -> int:
    return int(replies[0])


def _read_id(replies: Sequence[Any]) -> str:
    return raw_text(replies[0])


def _read_value(replies: Sequence[Any]) -> bytes | None:
    value: bytes | None = replies[0]
    return value


def _read_due(replies: Sequence[Any]) -> int | None:
    return next((int(due) for due in scores(replies[0]).values()), None)


def place_sizes(
    keys: QueueKeys, levels: Iterable[int], consumers: Iterable[str]
) -> CommandCall[PlaceSizes]:
    """Whether each job may be in one place: the schedule, the dead letters, those that wait for
    others, the lists of these levels, what these consumers hold."""
    commands: list[tuple[Arg, ...]] = [
        ("HLEN", keys.jobs),
        ("ZCARD", keys.scheduled),
        ("ZCARD", keys.dead),
        ("HLEN", keys.deferred),
    ]
    for level in levels:
        commands += [("LLEN", keys.ready(level)), ("LLEN", keys.due(level))]
    commands += [("LLEN", keys.held(name)) for name in consumers]
    return CommandCall(keys.meta, commands, _read_sizes)


def _list(keys: QueueKeys, kind: ListKind, level: int) -> str:
    return keys.due(level) if kind == "due" else keys.ready(level)


def list_length(keys: QueueKeys, kind: ListKind, level: int) -> CommandCall[int]:
    """Elements of a waiting list, marks of cancelled jobs included."""
    return CommandCall(keys.meta, [("LLEN", _list(keys, kind, level))], _read_count)


def id_at(keys: QueueKeys, kind: ListKind, level: int, index: int) -> CommandCall[str]:
    """The id of the job at an index of a waiting list; "" where the list is shorter. Redis walks
    there from the nearer end, so a long list is asked once at a time."""
    return CommandCall(keys.meta, [("LINDEX", _list(keys, kind, level), index)], _read_id)


def job_value(keys: QueueKeys, id: str) -> CommandCall[bytes | None]:
    """A job that has not ended: header and envelope; None where there is none."""
    return CommandCall(keys.meta, [("HGET", keys.jobs, id)], _read_value)


def last_time(keys: QueueKeys, which: Literal["scheduled", "dead"]) -> CommandCall[int | None]:
    """When the last scheduled job is due, or the last dead letter died, ms; None if there is none.
    The clock may have gone back since then."""
    key = keys.scheduled if which == "scheduled" else keys.dead
    return CommandCall(keys.meta, [("ZRANGE", key, -1, -1, "WITHSCORES")], _read_due)
