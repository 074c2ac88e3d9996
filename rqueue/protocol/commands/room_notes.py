"""Build the calls that look at what a bounded queue keeps of producers that wait for room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import names, pairs, raw_text, scores


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
    asked = {raw_text(name): raw_text(wish) for name, wish in pairs(wishes).items()}
    return RoomState(
        names(waiting),
        {name: int(deadline) for name, deadline in scores(grants).items()},
        {name: _number(wish.split(",")[0]) for name, wish in asked.items()},
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
