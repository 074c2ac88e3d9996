"""A sorted set: members by score, and members of one score by their bytes."""

from __future__ import annotations

from bisect import bisect_left, insort

__all__ = ["SortedSet"]


class SortedSet:
    """`order` is what is asked for by place or by range, `scores` what is asked for by name."""

    __slots__ = ("order", "scores")

    def __init__(self) -> None:
        self.order: list[tuple[float, bytes]] = []
        self.scores: dict[bytes, float] = {}

    def __len__(self) -> int:
        return len(self.order)

    def add(self, member: bytes, score: float) -> bool:
        """Set a member's score; whether it is new."""
        old = self.scores.get(member)
        if old is not None:
            if old == score:
                return False
            del self.order[self.rank_of(old, member)]
        self.scores[member] = score
        insort(self.order, (score, member))
        return old is None

    def remove(self, member: bytes) -> bool:
        """Take a member out; whether it was there."""
        score = self.scores.pop(member, None)
        if score is None:
            return False
        del self.order[self.rank_of(score, member)]
        return True

    def rank_of(self, score: float, member: bytes) -> int:
        """The place of a member that is there."""
        return bisect_left(self.order, (score, member))

    def remove_places(self, start: int, stop: int) -> int:
        """Take out the members from one place to before another; returns how many."""
        gone = self.order[start:stop]
        del self.order[start:stop]
        for _, member in gone:
            del self.scores[member]
        return len(gone)
