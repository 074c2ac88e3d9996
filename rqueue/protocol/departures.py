"""When a job left which queue for another one, as its option `origin` says: a queue that knows of
the same departure takes it back."""

from __future__ import annotations

from typing import Any

__all__ = ["departure", "departures"]

PASSED_MOST = 16
"""Departures that a job remembers."""


def departures(earlier: Any, queue: str, at: int) -> dict[str, int]:
    """Queue -> when a job left it last, of one that leaves this queue now. earlier: its origin so
    far, whatever that is."""
    known = earlier.get("left") if isinstance(earlier, dict) else None
    left = (
        {name: when for name, when in known.items() if name != queue}
        if isinstance(known, dict)
        else {}
    )
    while len(left) >= PASSED_MOST:
        del left[next(iter(left))]
    return {**left, queue: at}


def departure(options: Any, queue: str) -> int:
    """When a job with these options left this queue last, ms; 0 = it says nothing of that."""
    origin = options.get("origin") if isinstance(options, dict) else None
    left = origin.get("left") if isinstance(origin, dict) else None
    when = left.get(queue) if isinstance(left, dict) else 0
    return when if type(when) is int and 0 < when < 10**15 else 0
