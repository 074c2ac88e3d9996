"""Jobs and consumers of the model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rqueue.model.job import EPOCH_MS


@dataclass
class Job:
    id: str
    body: bytes
    level: int
    position: int
    enqueued: int
    max: int = 0
    due: int = 0
    deliveries: int = 0
    attempts: int = 0
    crashes: int = 0
    max_crashes: int = 0
    expires: int = 0
    group: str = ""
    key: str = ""
    held: str = ""
    """"h": it keeps its place until it is due; "h1": it was due."""
    front: str = ""
    """The level that it was enqueued for, where it is to come to the front."""
    sort: str = ""
    """The sort key, as it stands in the value."""
    unique: str = ""
    """As in its terms: until when, what a conflict answers, ":", the key."""
    forgiven: tuple[int, int] | None = None
    """Deliveries and position when a charge was taken back: until then its value has the length of
    before."""
    suspected: list[int] = field(default_factory=list)
    """The positions that it had when a worker died that may have been running it."""

    @property
    def order(self) -> tuple[int, int]:
        """Where it stands in its list: due 0 for the ready ones."""
        return self.due, self.position

    @property
    def unique_key(self) -> str:
        """What no two have at a time."""
        return self.unique.partition(":")[2]

    @property
    def lasts(self) -> str:
        """How long the key is its own: "e", "s", or ms."""
        return self._said[0]

    @property
    def answer(self) -> str:
        """What becomes of it where another one has the key: "x", "f", "r", "d" or "t"."""
        return self._said[1]

    @property
    def most(self) -> int:
        """Of a debounce, how long behind its enqueue it is due at the latest; 0 = no such time."""
        return int(self._said[2] or 0)

    @property
    def replaces(self) -> bool:
        """Whether one that waits gets its envelope."""
        return self.answer in ("r", "d", "t")

    @property
    def _said(self) -> tuple[str, str, str]:
        found = re.match(r"([es]|\d+)([a-z])(\d*):", self.unique)
        return (found[1], found[2], found[3]) if found else ("", "", "")

    @property
    def value(self) -> bytes:
        """As it is stored."""
        rest = (self.level, self.deliveries, self.attempts, self.max, self.due)
        crashes = (self.crashes, self.max_crashes)
        shown = "" if rest == (4, 0, 0, 0, 0) else "".join(f",{number}" for number in rest)
        if any(crashes) or self.forgiven == (self.deliveries, self.position):
            shown = "".join(f",{number}" for number in (*rest, *crashes))
        if self.expires:
            shown = "".join(f",{number}" for number in (*rest, *crashes, self.expires))
        shown += f"|{self.held}" if self.held else ""
        shown += f"|g{self.group}" if self.group else ""
        shown += f"|k{self.key}" if self.key else ""
        shown += f"|s{self.sort}" if self.sort else ""
        shown += f"|f{self.front}" if self.front else ""
        shown += f"|u{self.unique}" if self.unique else ""
        return f"{self.position},{self.enqueued - EPOCH_MS}{shown};".encode() + self.body


@dataclass
class Consumer:
    name: str
    mode: str
    priority: int
    jobs: int
    room: int
    """Bytes it may hold; 0: no limit."""
    slots: int
    lease_until: int
    term: int
    state: str = ""
    turn: int = 0
    notified_until: int = 0
    held: list[str] = field(default_factory=list)
    wake: list[bytes] = field(default_factory=list)
    running: dict[str, int] = field(default_factory=dict)
    """What was noted to run for long: id -> of which delivery."""

    @property
    def unread(self) -> set[str]:
        """Jobs that were delivered and whose messages it has not read."""
        words = [word for word in self.wake if word[:1] == b"J"]
        return {word[5 : 5 + int.from_bytes(word[1:5], "big")].decode() for word in words}

    @property
    def free(self) -> int:
        return self.jobs - len(self.held)
