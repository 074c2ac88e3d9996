"""Numbers with their nouns, and lists of names, for messages."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["many", "some"]


def many(count: int, one: str, more: str = "") -> str:
    """`1 job`, `2 jobs`, `10,000 entries`; `more`: the plural where it does not end in an s."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def some(names: Sequence[str], most: int = 10) -> str:
    """`a, b, c`; of more than `most`: `a, b, and 7 more`."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, and {len(names) - most:,} more"
