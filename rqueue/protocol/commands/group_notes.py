"""Build the calls that look at what a queue keeps of its groups, named as in the names of keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_text


class GroupState(NamedTuple):
    """Of one group: the id that has the turn (None: none has), how many jobs stand behind it, and
    whether it is known that some do."""

    turn: str | None
    behind: int
    known: bool


class TurnsPage(NamedTuple):
    """Some turns: group -> id. `cursor` goes into the next call; 0: that was the last page."""

    cursor: int
    turns: dict[str, str]


def _read_state(replies: Sequence[Any]) -> GroupState:
    turn, behind, known = replies
    return GroupState(None if turn is None else raw_text(turn), int(behind), known is not None)


def _read_page(replies: Sequence[Any]) -> TurnsPage:
    cursor, found = replies[0]
    if not isinstance(found, dict):
        found = dict(zip(found[::2], found[1::2], strict=True))
    turns = {raw_text(group): raw_text(id_) for group, id_ in found.items()}
    return TurnsPage(int(cursor), turns)


def _read_names(replies: Sequence[Any]) -> list[str]:
    return [raw_text(name) for name in replies[0]]


def _read_turns(replies: Sequence[Any]) -> list[str | None]:
    found = replies[0] if replies else []
    return [None if turn is None else raw_text(turn) for turn in found]


def _read_sum(replies: Sequence[Any]) -> int:
    return sum(map(int, replies))


def group_state(keys: QueueKeys, group: str) -> CommandCall[GroupState]:
    """What is kept of one group."""
    commands = [
        ("HGET", keys.groups, group),
        ("ZCARD", keys.group(group)),
        ("ZSCORE", keys.blocked, group),
    ]
    return CommandCall(keys.meta, commands, _read_state)


def turns_page(keys: QueueKeys, cursor: int = 0, *, count: int) -> CommandCall[TurnsPage]:
    """About `count` of the turns."""
    return CommandCall(keys.meta, [("HSCAN", keys.groups, cursor, "COUNT", count)], _read_page)


def turns_of(keys: QueueKeys, groups: Sequence[str]) -> CommandCall[list[str | None]]:
    """The ids that have the turns of these groups; None where there is none."""
    asked = [("HMGET", keys.groups, *groups)] if groups else []
    return CommandCall(keys.meta, asked, _read_turns)


def groups_known(keys: QueueKeys) -> CommandCall[list[str]]:
    """The groups of which it is known that jobs wait behind their turns."""
    return CommandCall(keys.meta, [("ZRANGE", keys.blocked, 0, -1)], _read_names)


def group_sizes(keys: QueueKeys, groups: Iterable[str], *, heads: bool = False) -> CommandCall[int]:
    """How many jobs stand behind the turns of these groups; heads: and how many heads are ready."""
    asked = [("ZCARD", keys.group(group)) for group in groups]
    return CommandCall(keys.meta, asked + [("ZCARD", keys.heads)] * heads, _read_sum)
