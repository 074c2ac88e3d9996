"""Confirmed enqueues: how many replicas, and whose disk, an enqueue waits for before it returns."""

from __future__ import annotations

from typing import Any, NamedTuple

from rqueue.errors import ConfigError, NotConfirmed
from rqueue.model.expect import expect, shown

__all__ = ["Confirmation", "Unconfirmed", "check_confirmation", "stricter"]

REPLICAS_MOST = 100
"""More replicas than this are a mistake."""

CONFIRM_MS = 1000
"""How long an enqueue waits for its confirmation where nothing else is said."""


class Confirmation(NamedTuple):
    """What a stored job is to be confirmed by: so many replicas that have it. fsync: it is on the
    disk of the primary, and of these replicas. within_ms: how long that is waited for."""

    replicas: int
    fsync: bool
    within_ms: int

    @property
    def command(self) -> tuple[str | int, ...]:
        """The command that blocks until what this connection wrote is confirmed."""
        if self.fsync:
            return ("WAITAOF", 1, self.replicas, self.within_ms)
        return ("WAIT", self.replicas, self.within_ms)

    def missing(self, reply: Any) -> Unconfirmed | None:
        """What the reply to `command` leaves unconfirmed; None for nothing. An error in its place
        leaves all of it open."""
        if isinstance(reply, Exception):
            return Unconfirmed(self, 0, False, str(reply))
        local, replicas = reply if self.fsync else (1, reply)
        if replicas >= self.replicas and local >= 1:
            return None
        return Unconfirmed(self, replicas, local >= 1 and self.fsync)


class Unconfirmed(NamedTuple):
    """Jobs are stored, and it was not confirmed as `wanted`: `replicas` did in time. on_disk:
    whether the primary has them on its disk, where that was asked for. reason: what the server said
    instead of an answer."""

    wanted: Confirmation
    replicas: int
    on_disk: bool
    reason: str = ""

    def error(self, queue: str, ids: tuple[str, ...]) -> NotConfirmed:
        """The error that says so of these jobs."""
        wanted = self.wanted
        return NotConfirmed(
            queue,
            ids,
            replicas=self.replicas,
            wanted=wanted.replicas,
            fsync=wanted.fsync,
            on_disk=self.on_disk,
            within_ms=wanted.within_ms,
            reason=self.reason,
        )


def stricter(one: Confirmation | None, other: Confirmation | None) -> Confirmation | None:
    """What confirms both: for jobs that are stored in one step."""
    if one is None or other is None or one == other:
        return one or other
    pairs = zip(one, other, strict=True)
    replicas, fsync, within_ms = (max(pair) for pair in pairs)
    return Confirmation(replicas, bool(fsync), within_ms)


def check_confirmation(replicas: int | None, fsync: bool | None, confirm_ms: int | None) -> None:
    """Raise ConfigError unless these are what an enqueue may wait for; None is not given."""
    if replicas is not None and (type(replicas) is not int or not 0 <= replicas <= REPLICAS_MOST):
        raise ConfigError("replicas", f"{shown(replicas)} is no whole number from 0 to 100")
    if fsync is not None:
        expect("fsync", fsync, bool, "True or False")
    if confirm_ms is not None and (type(confirm_ms) is not int or not 0 < confirm_ms <= 3_600_000):
        raise ConfigError("confirm_ms", f"{shown(confirm_ms)} is not from 1 ms to 1 hour")
