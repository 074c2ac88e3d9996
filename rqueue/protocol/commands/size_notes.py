"""Build the calls that look at what a queue with a limit in bytes keeps of its jobs' sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import pairs, raw_text

COUNTED = "waiting_bytes"
"""The field of `meta` that says how many bytes are counted."""


class SizePage(NamedTuple):
    """Some jobs by the ids, and what is noted of their bytes; how many bytes are counted in all at
    that moment. `cursor` continues; 0: the last."""

    counted: int
    cursor: int
    sizes: dict[str, str]


class SizeSum(NamedTuple):
    """Of one moment: how many bytes are counted, and what the notes add up to."""

    counted: int
    noted: int


def _number(word: Any) -> int:
    said = raw_text(word or b"0")
    return int(said) if said.removeprefix("-").isdecimal() else 0


def _size(word: Any) -> str:
    # a size that is counted anew just then has a 0 before it
    said = raw_text(word)
    return str(int(said)) if said.isdecimal() else said


def _read_page(replies: Sequence[Any]) -> SizePage:
    counted, (cursor, found) = replies
    sizes = {raw_text(id): _size(one) for id, one in pairs(found).items()}
    return SizePage(_number(counted), int(cursor), sizes)


def _read_count(replies: Sequence[Any]) -> int:
    return int(replies[0])


def _read_sum(replies: Sequence[Any]) -> SizeSum:
    return SizeSum(_number(replies[0]), sum(map(_number, replies[1])))


def _read_some(replies: Sequence[Any]) -> list[str]:
    return ["" if one is None else _size(one) for one in replies[0]] if replies else []


def size_count(keys: QueueKeys) -> CommandCall[int]:
    """Of how many jobs the bytes are noted."""
    return CommandCall(keys.meta, [("HLEN", keys.sizes)], _read_count)


def size_sum(keys: QueueKeys) -> CommandCall[SizeSum]:
    """Add them up at once: for queues that are not large."""
    asked = [("HGET", keys.meta, COUNTED), ("HVALS", keys.sizes)]
    return CommandCall(keys.meta, asked, _read_sum)


def size_page(keys: QueueKeys, cursor: int = 0, *, count: int) -> CommandCall[SizePage]:
    """About `count` of the notes."""
    asked = [("HGET", keys.meta, COUNTED), ("HSCAN", keys.sizes, cursor, "COUNT", count)]
    return CommandCall(keys.meta, asked, _read_page)


def sizes_noted(keys: QueueKeys, ids: Sequence[str]) -> CommandCall[list[str]]:
    """What is noted of the bytes of these jobs, "" where nothing is."""
    return CommandCall(keys.meta, [("HMGET", keys.sizes, *ids)] if ids else [], _read_some)
