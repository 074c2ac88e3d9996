"""A limit that a job names: how many jobs that name it are delivered at a time."""

from __future__ import annotations

from typing import NamedTuple

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.model.names import check_key, check_name_of_limit, group_of, group_text

__all__ = ["MOST", "NAMED", "JobLimit", "check_limits", "check_most"]

MOST = 999_999_999
"""What a limit allows at the most."""

NAMED = 8
"""So many limits may one job name."""


class JobLimit(NamedTuple):
    """At most `most` jobs of a queue that name this limit are delivered at a time; with a key, of
    those that name the same one. What `queue.limits.set` says goes before `most`."""

    name: str
    most: int
    key: str = ""

    def check(self) -> JobLimit:
        """Itself. Raises ConfigError and InvalidName."""
        check_name_of_limit(self.name)
        if self.key:
            check_key(self.key)
        check_most(self.most)
        return self

    @property
    def field(self) -> str:
        """As it stands in the names of keys and fields: `crm`, `crm=acme`."""
        if not self.key:
            return group_text(self.name)
        return f"{group_text(self.name)}={group_text(self.key)}"

    @property
    def words(self) -> str:
        """For people: "limit 'crm' of 'acme'"."""
        return f"limit {self.name!r}" + (f" of {self.key!r}" if self.key else "")

    @property
    def text(self) -> str:
        """As a job's terms have it: `crm=acme:5`."""
        return f"{self.field}:{self.most}"

    @classmethod
    def parse(cls, text: str) -> JobLimit:
        """The limit whose text this is. Raises ValueError."""
        field, _, most = text.rpartition(":")
        name, _, key = field.partition("=")
        return cls(group_of(name), int(most), group_of(key))


def check_most(most: object, least: int = 1) -> int:
    """Return `most` when a limit may allow so many. Raises ConfigError."""
    if type(most) is not int or not least <= most <= MOST:
        problem = f"{shown(most)} is not a whole number from {least} to {MOST}"
        raise ConfigError("limit", problem)
    return most


def check_limits(limits: tuple[JobLimit, ...]) -> None:
    """Raise ConfigError or InvalidName unless one job may name all of these."""
    if len(limits) > NAMED:
        raise ConfigError("limit", f"a job names at most {NAMED} limits, this one {len(limits)}")
    if len({one.check().field for one in limits}) < len(limits):
        raise ConfigError("limit", "a job names the same limit twice")
