"""Members of the sorted sets that jobs wait in: what they say, and what they ought to be."""

from __future__ import annotations

import re

from rqueue.protocol.commands.repair import level_in, order_in

MEMBER_PREFIX = 16
"""Digits before the id in a member of the schedule: two of 99 - level, the others the position."""

_SORT_KEY = re.compile(r"\|s([^|;]*)")


def sort_key_in(head: str) -> str:
    """The sort key in a header, as it is noted there; "" without one."""
    found = _SORT_KEY.search(head)
    return found[1] if found else ""


def member_of(head: str, id: str) -> bytes:
    """The member of the schedule for a job with this header; b"" where it is none."""
    order = order_in(head)
    if order is None or head[:1] == "!":
        return b""
    return member_at(level_in(head), order[1], id)


def member_at(level: int, position: int, id: str) -> bytes:
    """The member for a job of this level and position."""
    return f"{99 - level:02d}{position:014d}".encode() + id.encode("utf-8", "surrogateescape")


def standing_of(head: str, id: str) -> bytes:
    """The member of a job that is ready, in a sorted set; b"" where the header is none."""
    member = member_of(head, id)
    if not (key := sort_key_in(head)) or not member:
        return member
    return b"s" + key.encode("utf-8", "surrogateescape") + b"\0" + member[2:]


def id_in(member: bytes) -> bytes:
    """The id in a member."""
    if member[:1] != b"s":
        return member[MEMBER_PREFIX:]
    end = member.find(b"\0")
    return member[(len(member) if end < 0 else end + 1) + MEMBER_PREFIX - 2 :]
