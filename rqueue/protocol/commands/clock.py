"""Build the calls that read a queue's clock, and those that move or stop it for tests.

The clock is Redis's own; the field `clock` of `meta` moves it by so many ms, or stops it (`@` and
the time in ms).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys

_FIELD = "clock"


class Clock(NamedTuple):
    """A queue's clock in ms: Redis's time, by how much the queue's is ahead of it, and the time at
    which it stands; None: it goes."""

    server: int
    ahead: int = 0
    stopped: int | None = None

    @property
    def now(self) -> int:
        """The time as the queue's scripts see it, ms since the epoch."""
        return self.server + self.ahead if self.stopped is None else self.stopped


def clock_in(time: Any, setting: bytes | None) -> Clock:
    """The clock that the replies of `clock_commands` tell."""
    seconds, micros = time
    server = int(seconds) * 1000 + int(micros) // 1000
    if setting is not None and setting.startswith(b"@"):
        return Clock(server, stopped=int(setting[1:]))
    return Clock(server, int(setting or 0))


def clock_commands(keys: QueueKeys) -> list[tuple[str, ...]]:
    """The commands whose replies `clock_in` reads, for calls that say more than the time."""
    return [("TIME",), ("HGET", keys.meta, _FIELD)]


def read_clock(keys: QueueKeys) -> CommandCall[Clock]:
    """The queue's time."""
    return CommandCall(
        keys.meta, clock_commands(keys), lambda replies: clock_in(*replies), one_moment=False
    )


def _read_number(replies: Sequence[Any]) -> int:
    return int(replies[0])


def _read_nothing(replies: Sequence[Any]) -> None:
    pass


def move_clock(keys: QueueKeys, by_ms: int) -> CommandCall[int]:
    """Put a going clock so far ahead of where it is, or back; answers how far it is ahead then."""
    return CommandCall(keys.meta, [("HINCRBY", keys.meta, _FIELD, by_ms)], _read_number)


def stop_clock(keys: QueueKeys, at_ms: int) -> CommandCall[None]:
    """Let it stand at a time."""
    return CommandCall(keys.meta, [("HSET", keys.meta, _FIELD, f"@{at_ms}")], _read_nothing)


def reset_clock(keys: QueueKeys) -> CommandCall[None]:
    """Let it go on as Redis's own."""
    return CommandCall(keys.meta, [("HDEL", keys.meta, _FIELD)], _read_nothing)
