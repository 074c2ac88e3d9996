"""Rendezvous hashing: which of several owners a key belongs to, as all clients compute it.

An owner has one part or several. A key belongs to the owner of the part that scores highest with
it, so that an owner who comes takes its share of the keys from all others, and one who goes gives
its own to all. Scores are whole numbers of 64 bits, no floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from struct import unpack

__all__ = ["KEYS_KNOWN", "KeyOwners", "hash_of", "score"]

KEYS_KNOWN = 16_384
"""Keys whose owners are remembered: some MB."""

_MASK = 2**64 - 1

_FIRST, _SECOND = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53

_FEW = 8
"""So few keys have their owners looked for one by one: that takes no longer."""

_GAP = bytes(8)
"""Between two numbers that are multiplied at once, for what their products have more."""


def hash_of(text: str) -> int:
    """The hash of a key, or of a part."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def score(one: int, other: int) -> int:
    """A number that looks like chance, of two that do: the last steps of MurmurHash3."""
    mixed = one ^ other
    mixed = (mixed ^ (mixed >> 33)) * _FIRST & _MASK
    mixed = (mixed ^ (mixed >> 33)) * _SECOND & _MASK
    return mixed ^ (mixed >> 33)


class KeyOwners:
    """The owners of keys, by their numbers. parts: the hash of each part, and whose it is. The keys
    of late are remembered."""

    __slots__ = ("_known", "_parts", "_sole")

    def __init__(self, parts: Iterable[tuple[int, int]]) -> None:
        self._parts = list(parts)
        self._known: dict[str, int] = {}
        if not self._parts:
            raise ValueError("there is nobody to own a key")
        owners = {owner for _, owner in self._parts}
        self._sole = owners.pop() if len(owners) == 1 else None

    def of(self, key: str) -> int:
        """The owner of a key."""
        if self._sole is not None:
            return self._sole
        found = self._known.get(key)
        if found is None:
            found = self._highest(key)
            self._remember({key: found}, {key: found})
        return found

    def of_all(self, keys: Sequence[str]) -> list[int]:
        """The owner of each of these keys."""
        if self._sole is not None:
            return [self._sole] * len(keys)
        known = self._known
        try:
            return [known[key] for key in keys]
        except KeyError:
            pass
        found = {key: owner for key in keys if (owner := known.get(key)) is not None}
        unknown = [key for key in dict.fromkeys(keys) if key not in found]
        if len(unknown) < _FEW:
            new = {key: self._highest(key) for key in unknown}
        else:
            new = dict(zip(unknown, self._highest_of(unknown), strict=True))
        found |= new
        self._remember(new, found)
        return [found[key] for key in keys]

    def _remember(self, new: dict[str, int], found: dict[str, int]) -> None:
        """Where these would be too many, only those that were just asked for stay."""
        if len(self._known) + len(new) > KEYS_KNOWN:
            self._known = found
        else:
            self._known.update(new)

    def _highest(self, key: str) -> int:
        hashed, most, found = hash_of(key), -1, -1
        for part, owner in self._parts:
            # `score`, written out: it is asked for each part
            mixed = hashed ^ part
            mixed = (mixed ^ (mixed >> 33)) * _FIRST & _MASK
            mixed = (mixed ^ (mixed >> 33)) * _SECOND & _MASK
            mixed ^= mixed >> 33
            if mixed > most:
                most, found = mixed, owner
        return found

    def _highest_of(self, keys: list[str]) -> list[int]:
        """The same of many keys, some times as fast: the scores of all keys with one part are
        computed at once, side by side in one long number, 64 bits and a gap for each key."""
        size = len(keys)
        digests = [blake2b(key.encode(), digest_size=8).digest() for key in reversed(keys)]
        hashed = int.from_bytes(_GAP.join(digests), "big")
        ones = int.from_bytes((_GAP + (1).to_bytes(8, "big")) * size, "big")
        within, form = ones * _MASK, f"<{2 * size}Q"
        most: Sequence[int] = ()
        found: list[int] = []
        last = self._parts[-1][0]
        for part, owner in self._parts:
            mixed = hashed ^ ones * part
            mixed = ((mixed ^ mixed >> 33) & within) * _FIRST & within
            mixed = ((mixed ^ mixed >> 33) & within) * _SECOND & within
            # bits of one key that are shifted into the gap of another are not read
            scores = unpack(form, (mixed ^ mixed >> 33).to_bytes(16 * size, "little"))[::2]
            if not found:
                most, found = scores, [owner] * size
                continue
            sides = zip(scores, most, found, strict=True)
            found = [owner if its > highest else before for its, highest, before in sides]
            if part != last:
                most = [*map(max, scores, most)]
        return found
