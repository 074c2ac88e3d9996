"""How far a running job is, by its own report."""

from __future__ import annotations

from dataclasses import dataclass

from orjson import JSONDecodeError, dumps, loads

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, expect_number
from rqueue.model.job import JobState
from rqueue.model.log_line import LogLine

__all__ = ["JobUpdate", "Progress", "Report", "checked"]

MOST = 2**53
"""The largest number that JSON has in every language."""

LONGEST = 200
"""Characters of a text; what is longer is cut."""

Report = tuple[int | float, int | float | None, str]
"""done, total, text."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a job reported last: `done` of `total` (None: nobody knows) and a text. at_ms: when
    Redis got it. delivery: the how-manieth time that the job was delivered, from 1."""

    done: int | float
    total: int | float | None
    text: str
    at_ms: int
    delivery: int

    @property
    def fraction(self) -> float | None:
        """From 0 to 1; None where the total is not known. Nothing of nothing is all."""
        if self.total is None:
            return None
        return min(1.0, self.done / self.total) if self.total else 1.0

    def __str__(self) -> str:
        part = self.fraction
        numbers = f"{self.done:g}" if part is None else f"{self.done:g}/{self.total:g} ({part:.0%})"
        return f"{numbers} {self.text}".rstrip()


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """What one who watches a job sees: its state, how far it is (None: nothing was reported, or it
    is done), and the lines that it has logged since the update before."""

    state: JobState
    progress: Progress | None
    lines: tuple[LogLine, ...] = ()


def checked(done: object, total: object, text: object) -> Report:
    """What a job reports. Numbers are at least 0, finite and at most 2**53; a total of 0 is of a
    job with nothing to do; a text is cut after 200 characters. Raises ConfigError."""
    expect_number("progress", done, "a number of what is done")
    if total is not None:
        expect_number("progress", total, "a number of what there is to do, or None")
    expect("progress", text, str, "a text")
    for number in (done, total):
        if number is not None and number > MOST:  # type: ignore[operator]
            raise ConfigError("progress", f"{number!r:.30} is more than 2**53, the largest number")
    said = str(text)
    if len(said) > LONGEST:
        said = said[: LONGEST - 1] + "…"
    return done, total, said  # type: ignore[return-value]


def packed(report: Report) -> bytes:
    """A report as it is kept."""
    done, total, text = report
    return dumps([done, total, text.encode("utf-8", "replace").decode()])


def progress_of(delivery: str, at_ms: str, said: bytes) -> Progress | None:
    """A report as it was kept; None where there is none, or it cannot be read."""
    try:
        done, total, text = loads(said)
        return Progress(done, total, text, int(at_ms), int(delivery))
    except (JSONDecodeError, TypeError, ValueError):
        return None
