"""The shipped Lua sources with something changed in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Script, Scripts

START_MS = 1_700_000_000_000

Piece = tuple[str, str, str]
"""A source below `lua/`, a piece of it that must be there once, and what stands in its place."""


class Sources(Scripts):
    """Scripts of the shipped sources, with pieces of them replaced. like: a script that is made of
    none of these sources is the one of `like`, in which the others are as here: most of them are,
    and to put one of a kind with policies together takes as long as hundreds of its calls."""

    def __init__(self, pieces: Sequence[Piece] = (), like: Sources | None = None) -> None:
        super().__init__()
        self._pieces = pieces
        self._changed = {file for file, _, _ in pieces}
        self._like = like
        self._reads: set[str] = set()
        self._files: dict[tuple[str, Kind], set[str]] = {}
        for file in self._changed:
            self._read(file)

    def changed(self, *pieces: Piece) -> Sources:
        """These, with more replaced."""
        return Sources(pieces, self)

    def files(self, name: str, kind: Kind) -> set[str]:
        """The sources that a script is made of."""
        self.script(name, kind)
        return self._files[name, kind]

    def _load(self, name: str, kind: Kind) -> Script:
        if self._like is not None:
            files = self._like.files(name, kind)
            if not files & self._changed:
                self._files[name, kind] = files
                return self._like.script(name, kind)
        # what a policy says of itself was read before, perhaps
        self._reads = {f"policies/{policy}.lua" for policy in kind.policies}
        made = super()._load(name, kind)
        self._files[name, kind] = self._reads
        return made

    def _read(self, path: str) -> str | None:
        self._reads.add(path)
        if path not in self._texts:
            text = super()._read(path) if self._like is None else self._like._read(path)
            for file, right, wrong in self._pieces:
                if file == path:
                    assert text is not None and text.count(right) == 1, (
                        f"lua/{file} has changed: this piece is not there once: {right}"
                    )
                    text = text.replace(right, wrong)
            self._texts[path] = text
        return self._texts[path]


@cache
def shipped() -> Sources:
    """As they are."""
    return Sources()


@cache
def sound() -> Sources:
    """With a clock that stands still unless a test moves it.

    A search at random must find the same again when it repeats its steps: with a clock that runs
    by itself, two times are now the same millisecond and now not.
    """
    running = "now = now - now % 1"
    return Sources(
        [
            ("include/queue/clock.lua", running, f"now = {START_MS}"),
            # Lifetimes are Redis's own business and go on: no search takes that long.
            ("include/result/records.lua", "return 2 * keep", "return 2 * keep + 600000"),
        ]
    )
