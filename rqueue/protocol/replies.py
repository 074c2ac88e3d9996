"""Read the replies of Redis's own commands, whichever form they come in.

redis-py gives some of them forms of its own, others as RESP2 or RESP3 has them, and leaves what a
cluster's transaction answers as it came.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def raw_text(value: bytes | None) -> str:
    """A name or an id, which may hold bytes that are no UTF-8; "" for None."""
    return (value or b"").decode("utf-8", "surrogateescape")


def raw_bytes(value: str) -> bytes:
    """What `raw_text` made a text of."""
    return value.encode("utf-8", "surrogateescape")


def pairs(reply: Any) -> dict[bytes, bytes]:
    """A hash."""
    if isinstance(reply, dict):
        return reply
    return dict(zip(reply[::2], reply[1::2], strict=True))


def names(reply: Iterable[bytes]) -> list[str]:
    """The members of a list, a set or a sorted set, in their order where they have one."""
    return [raw_text(member) for member in reply]


def scores(reply: Any) -> dict[str, float]:
    """Members of a sorted set with their scores, lowest first."""
    if reply and not isinstance(reply[0], bytes):
        return {raw_text(member): float(score) for member, score in reply}
    return {raw_text(reply[i]): float(reply[i + 1]) for i in range(0, len(reply), 2)}


def score(reply: Any) -> float | None:
    """The score of one member; None where it is not there."""
    return None if reply is None else float(reply)
