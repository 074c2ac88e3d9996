"""Which elements of a list stand where they do not belong."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

__all__ = ["misplaced"]


def misplaced(elements: Mapping[bytes, tuple[int, int]]) -> list[str]:
    """The fewest elements without which a list is sorted. `elements`: where each stands, the last
    one first."""
    members = list(elements)[::-1]
    orders = [elements[member] for member in members]
    # longest increasing subsequence: `tails[n]` ends the best one of length n + 1
    tails: list[tuple[int, int]] = []
    ends: list[int] = []
    before: list[int] = []
    for index, order in enumerate(orders):
        length = bisect_left(tails, order)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [order]
        ends[length : length + 1] = [index]
    kept, at = set(), ends[-1] if ends else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return [
        member.decode("utf-8", "surrogateescape")
        for index, member in enumerate(members)
        if index not in kept
    ]
