"""What a job may raise to decide its own fate.

These are outcomes, not failures, and therefore no RQueueErrors: nothing went wrong in rqueue. They
derive from Exception, so a bare `except Exception` around them in a task swallows them: let them
pass.

- `raise Retry(after=30)`: failed for now. Counts as an attempt; at the limit the job goes to the
  dead letters with `reason`.
- `raise Reject("no such user")`: failed for good, to the dead letters at once.
- `raise Snooze(60)`: not yet. Later, and not counted.
- `raise Refuse("no printer here")`: not in this process. Others take it at once; not counted.
"""

from __future__ import annotations

from datetime import timedelta
from sys import float_info
from typing import Any

from rqueue.tasks.other_words import explained

__all__ = ["Cancelled", "Control", "Refuse", "Reject", "Retry", "Snooze"]


_MOST = float_info.max


def _seconds(value: float | timedelta, name: str) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{name} is seconds or a timedelta, not {type(value).__name__}")
    if not 0 <= seconds <= _MOST:
        raise ValueError(f"{name} is {seconds} s: it must be finite and not negative")
    return float(seconds)


class Cancelled(BaseException):
    """Raised by the worker in a running job that was cancelled with `running=True`. The job has
    ended already, whatever comes of this: it is there to tidy up, and no Exception, so that
    `except Exception` lets it pass."""


class Control(Exception):
    """Base of the outcomes that a job may raise. `reason` is kept in its history."""

    reason: str = ""


class Retry(Control):
    """Run the job again, counted as a failed attempt.

    `after`: seconds (or a timedelta) to wait; None leaves it to the job's retry policy.
    """

    @explained("Retry", "write Retry(after=seconds)")
    def __init__(self, after: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(after, reason)
        self.after = None if after is None else _seconds(after, "after")
        self.reason = reason

    def __str__(self) -> str:
        when = "" if self.after is None else f" after {self.after:g} s"
        return f"retry{when}{': ' if self.reason else ''}{self.reason}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.after, self.reason)


class Reject(Control):
    """The job failed for good: to the dead letters, whatever its retry policy says."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"rejected{': ' if self.reason else ''}{self.reason}"


class Refuse(Control):
    """Not in this worker process: other consumers take the job at once, in its place, and it does
    not come here again. Neither an attempt nor a failure (Q-08)."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"refused{': ' if self.reason else ''}{self.reason}"


class Snooze(Control):
    """Run the job again in `seconds` (or a timedelta); neither an attempt nor a failure."""

    def __init__(self, seconds: float | timedelta, reason: str = "") -> None:
        super().__init__(seconds, reason)
        self.seconds = _seconds(seconds, "seconds")
        self.reason = reason

    def __str__(self) -> str:
        return f"snoozed for {self.seconds:g} s{': ' if self.reason else ''}{self.reason}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.seconds, self.reason)
