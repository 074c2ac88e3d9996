"""Build the calls that look at what a queue keeps of its shares, by strands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.model.names import group_text
from rqueue.model.share import OTHERS
from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_text

__all__ = [
    "ShareTurn",
    "StrandState",
    "StrandsPage",
    "heads_there",
    "lined_state",
    "share_turn",
    "strand_state",
    "strands_of",
    "strands_page",
]

DIGITS = 15
"""Of the score by which the head of a strand stands in it, before its member."""


class StrandState(NamedTuple):
    """Of one strand: the member of its head as it is said (None: it has none), the score by which
    that stands in the strand, its score among the heads (None: it is none), how many stand behind
    it, the score of the first of these (None: there is none), and whether it is known that some
    do."""

    head: bytes | None
    at: float
    score: float | None
    behind: int
    first: float | None
    known: bool


class StrandsPage(NamedTuple):
    """Some strands that are said to have heads, and the members of these. `cursor` goes into the
    next call; 0: that was the last page."""

    cursor: int
    strands: dict[str, bytes]


def _member(said: bytes) -> bytes:
    return said[DIGITS:]


def _read_state(replies: Sequence[Any]) -> StrandState:
    said, score, behind, first, known = replies
    digits = (said or b"")[:DIGITS]
    if isinstance(first, dict):
        first = [*first.items()]
    found = first[0][1] if first and isinstance(first[0], list | tuple) else (first or [0, None])[1]
    return StrandState(
        None if said is None else _member(said),
        float(digits) if digits.isdigit() else -1.0,
        None if score is None else float(score),
        int(behind),
        None if found is None else float(found),
        known is not None,
    )


def strand_state(keys: QueueKeys, strand: str, head: bytes) -> CommandCall[StrandState]:
    """What is kept of one strand. head: the member that is said to be its head, from a look before;
    b"" where there was none."""
    commands: list[tuple[Any, ...]] = [
        ("HGET", keys.base + "strands", strand),
        ("ZSCORE", keys.heads, head),
        ("ZCARD", keys.group(strand)),
        ("ZRANGE", keys.group(strand), 0, 0, "WITHSCORES"),
        ("ZSCORE", keys.blocked, strand),
    ]
    return CommandCall(keys.meta, commands, _read_state)


def _read_page(replies: Sequence[Any]) -> StrandsPage:
    cursor, found = replies[0]
    if not isinstance(found, dict):
        found = dict(zip(found[::2], found[1::2], strict=True))
    return StrandsPage(
        int(cursor), {raw_text(strand): _member(said) for strand, said in found.items()}
    )


def strands_page(keys: QueueKeys, cursor: int = 0, *, count: int) -> CommandCall[StrandsPage]:
    """About `count` of the strands with ready jobs."""
    return CommandCall(
        keys.meta, [("HSCAN", keys.base + "strands", cursor, "COUNT", count)], _read_page
    )


def _read_heads(replies: Sequence[Any]) -> list[bytes]:
    return [b"" if said is None else _member(said) for said in (replies[0] if replies else [])]


def strands_of(keys: QueueKeys, strands: Sequence[str]) -> CommandCall[list[bytes]]:
    """The members that are said to be the heads of these strands; b"" where there is none."""
    asked: list[tuple[Any, ...]] = [("HMGET", keys.base + "strands", *strands)] if strands else []
    return CommandCall(keys.meta, asked, _read_heads)


def _read_there(replies: Sequence[Any]) -> list[bool]:
    return [score is not None for score in (replies[0] if replies else [])]


def heads_there(keys: QueueKeys, members: Sequence[bytes]) -> CommandCall[list[bool]]:
    """Which of these members stand among the heads."""
    asked: list[tuple[Any, ...]] = [("ZMSCORE", keys.heads, *members)] if members else []
    return CommandCall(keys.meta, asked, _read_there)


class ShareTurn(NamedTuple):
    """How a share takes turns: its weight, and how many shares have ready jobs in the level."""

    weight: int
    waiting: int


def _read_turn(replies: Sequence[Any]) -> ShareTurn:
    (own, others), waiting = replies
    said = own or others or b"1"
    return ShareTurn(int(said) if said.isdigit() else 1, int(waiting))


def share_turn(keys: QueueKeys, level: int, share: str) -> CommandCall[ShareTurn]:
    """How a share takes turns with the others of a level."""
    low = (9 - level) * 10**14
    commands: list[tuple[Any, ...]] = [
        ("HMGET", keys.base + "weights", group_text(share), OTHERS),
        ("ZCOUNT", keys.heads, low, f"({low + 10**14}"),
    ]
    return CommandCall(keys.meta, commands, _read_turn)


def _read_lined(replies: Sequence[Any]) -> dict[str, int]:
    found = replies[0]
    if not isinstance(found, dict):
        found = dict(zip(found[::2], found[1::2], strict=True))
    counts = {raw_text(level): raw_text(count) for level, count in found.items()}
    return {level: int(text) if text.isdecimal() else -1 for level, text in counts.items()}


def lined_state(keys: QueueKeys) -> CommandCall[dict[str, int]]:
    """How many are said to stand behind the heads of strands, by level; -1: that is no number."""
    return CommandCall(keys.meta, [("HGETALL", keys.base + "lined")], _read_lined)
