"""How far a long command is: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import time
from typing import Any

from rqueue.cli.output import echo, rate
from rqueue.cli.progress import Counter

EVERY_S = 1.0
"""Between two lines."""


class Meter(Counter):
    """Rows done, of how many, and how fast; on stderr, unless `quiet`."""

    def __init__(self, what: str, total: int | None = None, *, quiet: bool = False) -> None:
        super().__init__(what, total, quiet=quiet)
        self._what = what
        self._total = total
        self._quiet = quiet
        self._began = time.monotonic()
        self._said = 0.0
        self._shown = -1
        self._first: int | None = None

    def _columns(self) -> tuple[Any, ...]:
        from rich.progress import TextColumn, TimeRemainingColumn

        return *super()._columns(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn()

    def update(self, done: int, total: int | None = None) -> None:
        """So many are done, of so many. The number of the first call does not count for the
        rate."""
        now = time.monotonic()
        self._total = self._total if total is None else total
        if self._first is None:
            self._first, self._began = done, now
        seconds = now - self._began
        speed = rate((done - self._first) / seconds) if seconds > 0.2 else ""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=self._total, rate=speed)
        elif (
            not self._quiet
            and done != self._shown
            and (done == self._total or now - self._said >= EVERY_S)
        ):
            self._said, self._shown = now, done
            of = "" if self._total is None else f" of {self._total:,}"
            echo(f"{self._what}: {done:,}{of}{', ' if speed else ''}{speed}", err=True)
