"""Numbers with their nouns, for messages."""

from __future__ import annotations

__all__ = ["many"]


def many(count: int, one: str, more: str = "") -> str:
    """`1 job`, `2 jobs`, `10,000 entries`; `more`: the plural where it does not end in an s."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
