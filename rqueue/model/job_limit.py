"""A limit that a job names: how many jobs that name it are delivered, at a time or in a time."""

from __future__ import annotations

from typing import NamedTuple

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.model.names import check_key, check_name_of_limit, group_of, group_text

__all__ = [
    "ALL_KEYS",
    "LONGEST_MS",
    "MOST",
    "NAMED",
    "JobLimit",
    "allows_text",
    "check_limits",
    "check_most",
    "of_all_keys",
]

MOST = 999_999_999
"""What a limit allows at the most."""

LONGEST_MS = 999_999_999
"""The longest time of a rate: eleven days."""

ALL_KEYS = "*"
"""What is set for this key holds for all keys of a limit of which nothing else is set."""

NAMED = 8
"""So many limits may one job name."""


class JobLimit(NamedTuple):
    """At most `most` jobs of a queue that name this limit are delivered at a time; with a key, of
    those that name the same one. What `queue.limits.set` says goes before `most`.

    With `per_ms` it is a rate: a bucket gets `most` tokens in that time, one after the other, and
    holds `burst` (0: `most`); this job takes `cost` of them, all where that is more than `burst`.
    """

    name: str
    most: int
    key: str = ""
    per_ms: int = 0
    burst: int = 0
    cost: int = 1

    def check(self) -> JobLimit:
        """Itself. Raises ConfigError and InvalidName."""
        check_name_of_limit(self.name)
        if self.key:
            check_key(self.key)
        check_most(self.most)
        check_most(self.burst, least=0, what="the burst")
        check_most(self.cost, least=0, what="the cost")
        if type(self.per_ms) is not int or not 0 <= self.per_ms <= LONGEST_MS:
            raise ConfigError("limit", f"{shown(self.per_ms)} ms are no time of a rate")
        return self

    @property
    def field(self) -> str:
        """As it stands in the names of keys and fields: `crm`, `crm=acme`; of a rate `@crm`."""
        name = ("@" if self.per_ms else "") + group_text(self.name)
        return f"{name}={group_text(self.key)}" if self.key else name

    @property
    def settable(self) -> str:
        """As `field`, for what an operator sets: its key may stand for all keys, `crm=*`."""
        if self.key != ALL_KEYS:
            return self.field
        return f"{self._replace(key='').field}={ALL_KEYS}"

    @property
    def words(self) -> str:
        """For people: "limit 'crm' of 'acme'"."""
        kind = "rate" if self.per_ms else "limit"
        return f"{kind} {self.name!r}" + (f" of {self.key!r}" if self.key else "")

    @property
    def allows(self) -> str:
        """What it allows, for people: "5", "100 in 60 s", "100 in 60 s, 20 at once"."""
        if not self.per_ms:
            return str(self.most)
        once = f", {self.burst} at once" if self.burst not in (0, self.most) else ""
        return f"{self.most} in {self.per_ms / 1000:g} s{once}"

    @property
    def every_ms(self) -> float:
        """Of a rate: ms from one job to the next, of jobs like this one; 0: there comes none."""
        return self.per_ms / self.most * self.cost if self.most else 0.0

    @property
    def tokens(self) -> int:
        """Of a rate: those that such a job takes."""
        return min(self.cost, self.burst or self.most)

    @property
    def text(self) -> str:
        """As a job's terms have it: `crm=acme:5`, `@crm=acme:100/60000+20*1`."""
        cost = f"*{self.cost}" if self.per_ms else ""
        return f"{self.field}:{allows_text(self.most, self.per_ms, self.burst)}{cost}"

    def allowing(self, text: str) -> JobLimit:
        """The same where this, an `allows_text`, was set for it. Raises ValueError."""
        most, _, rest = text.partition("/")
        per, _, burst = rest.partition("+")
        return self._replace(most=int(most), per_ms=int(per or 0), burst=int(burst or 0))

    @classmethod
    def parse(cls, text: str) -> JobLimit:
        """The limit whose text this is. Raises ValueError."""
        field, _, said = text.rpartition(":")
        name, _, key = field.removeprefix("@").partition("=")
        allows, _, cost = said.partition("*")
        limit = cls(group_of(name), 1, group_of(key), cost=int(cost or 1))
        return limit.allowing(allows)


def of_all_keys(field: str) -> str:
    """What is set for all keys of this limit stands under this name: `crm=*` for `crm=acme`."""
    name, separator, _ = field.partition("=")
    return f"{name}={ALL_KEYS}" if separator else name


def allows_text(most: int, per_ms: int = 0, burst: int = 0) -> str:
    """What a limit allows, as it is stored: `5`, `100/60000+20`."""
    return f"{most}/{per_ms}+{burst or max(most, 1)}" if per_ms else str(most)


def check_most(most: object, least: int = 1, what: str = "") -> int:
    """Return `most` when a limit may allow so many. Raises ConfigError."""
    if type(most) is not int or not least <= most <= MOST:
        problem = f"{shown(most)} is not a whole number from {least} to {MOST}"
        raise ConfigError("limit", f"{what}: {problem}" if what else problem)
    return most


def check_limits(limits: tuple[JobLimit, ...]) -> None:
    """Raise ConfigError or InvalidName unless one job may name all of these."""
    if len(limits) > NAMED:
        raise ConfigError("limit", f"a job names at most {NAMED} limits, this one {len(limits)}")
    if len({one.check().field for one in limits}) < len(limits):
        raise ConfigError("limit", "a job names the same limit twice")
