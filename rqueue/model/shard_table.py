"""Over which shards a queue is spread, and where a key belongs.

A key goes to the open shard that scores highest for it (rendezvous hashing), so that a shard which
opens takes its part of the keys from all others, and one that is drained gives its own to all. All
clients compute the same: whole numbers of 64 bits, no floats. A shard of weight 3 scores three
times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.model.names import check_queue
from rqueue.model.rendezvous import KeyOwners, hash_of, score
from rqueue.model.server_url import problem_of

__all__ = ["SHARDS_MAX", "WEIGHT_MAX", "Move", "Shard", "ShardTable", "home", "shard_of_name"]

SHARDS_MAX, WEIGHT_MAX = 1000, 100

PAST_MAX = 64
"""Earlier changes that a table remembers at the most: of those before them ids are not asked."""

_FIELDS = ("version", "moving", "past")
"""Those that are no row of a shard."""

_CHANGE = re.compile(r"(\d{1,15})([+-])(\d{1,3})\*(\d{1,3})")

State = Literal["open", "draining", "closed", "gone"]


class Shard(NamedTuple):
    """One shard. number: its own for ever. state: it takes jobs (open), what it has goes and
    nothing comes (draining), nothing is left (closed), its server is gone for good, and what it had
    with it (gone). weight: its part of the keys. place: URL of its server, "" = where the table
    is."""

    number: int
    state: State = "open"
    weight: int = 1
    place: str = ""

    @property
    def text(self) -> str:
        """As the table has it."""
        return f"{self.state} {self.weight} {self.place}"

    @classmethod
    def parse(cls, number: str, text: str) -> Shard:
        """The shard whose text this is. Raises ValueError."""
        words = text.split(" ", 2)
        if len(words) != 3 or words[0] not in get_args(State):
            raise ValueError(f"shard {number} is said to be {shown(text)}")
        state, weight, place = words
        if not weight.isdecimal() or not 1 <= int(weight) <= WEIGHT_MAX:
            raise ValueError(f"shard {number} has the weight {shown(weight)}")
        if int(number) >= SHARDS_MAX:
            raise ValueError(f"a shard has the number {number}")
        return cls(int(number), state, int(weight), place)  # type: ignore[arg-type]


class Move(NamedTuple):
    """What the newest version of a table changes while that goes on. sources: shards whose keys
    move; what they have goes first. targets: shards to which the keys move, which wait. shut: the
    source that takes nothing more, None = all go on."""

    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    shut: int | None = None


class Change(NamedTuple):
    """One change of a table: what version it made, and the shard that took keys from then on, or
    took none any more, with the weight that it had."""

    version: int
    number: int
    opened: bool
    weight: int

    @property
    def text(self) -> str:
        """As the table has it."""
        return f"{self.version}{'+' if self.opened else '-'}{self.number}*{self.weight}"

    @classmethod
    def parse(cls, text: str) -> Change:
        """The change whose text this is. Raises ValueError."""
        found = _CHANGE.fullmatch(text)
        if found is None:
            raise ValueError(f"an earlier change is said to be {shown(text)}")
        version, sign, number, weight = found.groups()
        return cls(int(version), int(number), sign == "+", int(weight))


class ShardTable:
    """The shards of a queue, by one version of its table; version 0: it has none. past: the changes
    that led to it, the latest first, as long as shards may know ids from before them."""

    def __init__(
        self,
        queue: str,
        version: int = 0,
        moving: str = "",
        shards: Iterable[Shard] = (),
        past: Iterable[Change] = (),
    ) -> None:
        self.queue = queue
        self.version = version
        self.moving = moving
        self.shards = {shard.number: shard for shard in shards}
        self.past = tuple(past)
        self.unknown: tuple[str, ...] = ()
        """Fields of which nothing is known: a later version of rqueue may have written them."""

    @classmethod
    def of(cls, queue: str, fields: dict[str, str]) -> ShardTable:
        """The table with these fields. Raises ValueError where no table has them."""
        shards = [Shard.parse(name, text) for name, text in fields.items() if name.isdecimal()]
        if len({shard.number for shard in shards}) < len(shards):
            raise ValueError("it has two rows of one shard")
        shards.sort()
        version = fields.get("version", "" if fields else "0")
        if not version.isdecimal():
            raise ValueError(f"its version is {shown(version)}")
        past = [Change.parse(text) for text in fields.get("past", "").split()]
        table = cls(queue, int(version), fields.get("moving", ""), shards, past)
        table.unknown = tuple(
            sorted(name for name in fields if not name.isdecimal() and name not in _FIELDS)
        )
        table._check()
        return table

    def _check(self) -> None:
        if not self.version:
            if self.shards:
                raise ValueError("it has shards and no version")
            return
        if not self.open:
            raise ValueError("it has no open shard")
        verb, _, rest = self.moving.partition(" ")
        number, _, how = rest.partition(" ")
        known = self.shards.get(int(number)) if number.isdecimal() else None
        state = {"open": "open", "drain": "draining"}.get(verb)
        if self.moving and (known is None or known.state != state or how not in ("", "unordered")):
            raise ValueError(f"what changes is {shown(self.moving)}, which does not fit its shards")

    @property
    def fields(self) -> dict[str, str]:
        """What `of` makes this table of."""
        past = " ".join(change.text for change in self.past)
        shards = {str(shard.number): shard.text for shard in self.shards.values()}
        return {"version": str(self.version), "moving": self.moving, "past": past, **shards}

    @property
    def layout(self) -> dict[int, tuple[bool, int, str]]:
        """What says where a key belongs: of each shard whether it takes jobs, its weight and its
        place. Of one version there is one layout; what else the table says may go on."""
        return {
            shard.number: (shard.state == "open", shard.weight, shard.place)
            for shard in self.shards.values()
        }

    @property
    def open(self) -> list[Shard]:
        """Those that take jobs."""
        return [shard for shard in self.shards.values() if shard.state == "open"]

    @property
    def served(self) -> list[Shard]:
        """Those that may have jobs."""
        return [shard for shard in self.shards.values() if shard.state in ("open", "draining")]

    @property
    def counted(self) -> list[Shard]:
        """Those whose numbers count: also closed ones, unless they were on other servers, which may
        be gone."""
        return [
            shard
            for shard in self.shards.values()
            if shard in self.served or (shard.state == "closed" and not shard.place)
        ]

    def name(self, shard: Shard | int) -> str:
        """The name of a shard's queue."""
        return f"{self.queue}~{shard if isinstance(shard, int) else shard.number}"

    @cached_property
    def _owners(self) -> KeyOwners:
        """Of one version that stays as it is."""
        return KeyOwners(
            (hash_of(f"{shard.number} {part}"), shard.number)
            for shard in self.open
            for part in range(shard.weight)
        )

    def shard_of(self, key: str) -> Shard:
        """The open shard that a key belongs to."""
        return self.shards[self._owners.of(key)]

    def numbers_of(self, keys: Sequence[str]) -> list[int]:
        """The numbers of the open shards that these keys belong to."""
        return self._owners.of_all(keys)

    @cached_property
    def _layouts(self) -> list[dict[int, int]]:
        """The shards that took jobs, and their weights: before the latest change, and so on."""
        found = [{shard.number: shard.weight for shard in self.open}]
        for change in self.past:
            before = dict(found[-1])
            if change.opened:
                before.pop(change.number, None)
            else:
                before[change.number] = change.weight
            found.append(before)
        return found[1:]

    @cached_property
    def _past_seeds(self) -> list[tuple[int, int, int]]:
        """The hash of each part that a shard had in an earlier table, its number and the part."""
        parts: dict[int, int] = {}
        for layout in self._layouts:
            for number, weight in layout.items():
                parts[number] = max(parts.get(number, 0), weight)
        return [
            (hash_of(f"{number} {part}"), number, part)
            for number, weight in parts.items()
            for part in range(weight)
        ]

    def earlier(self, key: str) -> list[Shard]:
        """The shards that a key belonged to before, as far as that is known, the latest first: they
        may know ids of its jobs."""
        if not self.past:
            return []
        hashed = hash_of(key)
        ranked = sorted(self._past_seeds, key=lambda seed: -score(hashed, seed[0]))
        found = {self.shard_of(key).number: True}
        for layout in self._layouts:
            owner = next((n for _, n, part in ranked if part < layout.get(n, 0)), None)
            if owner in self.shards and self.shards[owner].state != "gone":
                found.setdefault(owner, True)
        return [self.shards[number] for number in [*found][1:]]

    def past_with(self, changed: Iterable[Shard]) -> str:
        """What `past` is once these shards have changed."""
        now = [
            Change(self.version + 1, shard.number, shard.state == "open", shard.weight)
            for shard in changed
        ]
        return " ".join(change.text for change in [*now, *self.past][:PAST_MAX])

    def without(self, number: int) -> dict[str, str]:
        """The fields of the next version, in which this shard is given up with all that it has:
        nobody waits for it."""
        shard = self.shards[number]
        gone = shard._replace(state="gone")
        fields = {**self.fields, str(number): gone.text, "version": str(self.version + 1)}
        if self.moving.split(" ")[1:2] == [str(number)]:
            fields["moving"] = ""
        if shard.state == "open":
            fields["past"] = self.past_with([gone])
        return fields

    @property
    def move(self) -> Move:
        """What goes on now."""
        verb, _, rest = self.moving.partition(" ")
        number, _, how = rest.partition(" ")
        others = tuple(shard.number for shard in self.open if str(shard.number) != number)
        if verb == "open":
            return Move(others, (int(number),))
        if verb == "drain":
            return Move((int(number),), () if how == "unordered" else others, int(number))
        return Move()

    def __repr__(self) -> str:
        return f"<ShardTable of {self.queue!r}, version {self.version}: {[*self.shards.values()]}>"


def shard_of_name(name: str) -> tuple[str, int] | None:
    """The queue and the number that the name of a shard's queue says; None where it is no such
    name."""
    queue, tilde, number = name.rpartition("~")
    return (queue, int(number)) if tilde and queue and number.isdecimal() else None


def home(worker: str, shards: Iterable[int], most: int) -> set[int]:
    """The shards that a process of this name is at home in: `most` of them, by rendezvous."""
    hashed = hash_of(worker)
    ranked = sorted(shards, key=lambda number: -score(hashed, hash_of(f"{number} home")))
    return set(ranked[:most])


def check_shard(number: object, weight: object = 1, place: object = "") -> Shard:
    """An open shard of this number, weight and place. Raises ConfigError."""
    if type(number) is not int or not 0 <= number < SHARDS_MAX:
        raise ConfigError("shard", f"{shown(number)} is no whole number from 0 to {SHARDS_MAX - 1}")
    if type(weight) is not int or not 1 <= weight <= WEIGHT_MAX:
        raise ConfigError("weight", f"{shown(weight)} is no whole number from 1 to {WEIGHT_MAX}")
    if not isinstance(place, str) or " " in place or (place and (problem := problem_of(place))):
        said = problem if isinstance(place, str) and " " not in place else "it is no URL"
        raise ConfigError("place", said)
    return Shard(number, "open", weight, place)


def check_spread(queue: str) -> str:
    """Return the name of a queue where it may have shards. Raises InvalidName, ConfigError."""
    check_queue(f"{queue}~{SHARDS_MAX}")
    if shard_of_name(queue) is not None:
        raise ConfigError("shards", f"queue {shown(queue)} has the name of a shard")
    return queue
