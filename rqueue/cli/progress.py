"""A line that counts while a long command works; on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from rqueue.text.escape import escaped


class Counter:
    """Shows how far a command is, on stderr, where that is a terminal and `quiet` is not set."""

    def __init__(self, what: str, total: int | None = None, *, quiet: bool = False) -> None:
        self._bar: Any = None
        self._task: Any = None
        if sys.stderr.isatty() and not quiet:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(*self._columns(), console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(escaped(what), total=total, rate="")

    def _columns(self) -> tuple[Any, ...]:
        """The parts of the line."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

        return TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()

    def update(self, done: int) -> None:
        """So many are done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
