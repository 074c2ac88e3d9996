"""Build the calls that look at what a bounded queue keeps of producers that wait for room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_text


class RoomState(NamedTuple):
    """Of one moment: producers that wait, those with a grant, each with its deadline (ms), for how
    many jobs each of both asked (None: what is noted cannot be read), and for how many room is
    counted to be kept."""

    waiting: list[str]
    grants: dict[str, int]
    wishes: dict[str, int | None]
    granted: int


def _number(word: str) -> int | None:
    return int(word) if word.isdecimal() else None


def _read(replies: Sequence[Any]) -> RoomState:
    waiting, grants, wishes, granted = replies
    pairs = grants.items() if isinstance(grants, dict) else grants
    if isinstance(wishes, list):
        wishes = dict(zip(wishes[::2], wishes[1::2], strict=True))
    return RoomState(
        [raw_text(name) for name in waiting],
        {raw_text(name): int(float(deadline)) for name, deadline in pairs},
        {raw_text(name): _number(raw_text(wish).split(",")[0]) for name, wish in wishes.items()},
        _number(raw_text(granted or b"0")) or 0,
    )


def room_state(keys: QueueKeys) -> CommandCall[RoomState]:
    """What is kept of producers."""
    commands = [
        ("ZRANGE", keys.producers, 0, -1),
        ("ZRANGE", keys.grants, 0, -1, "WITHSCORES"),
        ("HGETALL", keys.wishes),
        ("HGET", keys.meta, "granted"),
    ]
    return CommandCall(keys.meta, commands, _read)
