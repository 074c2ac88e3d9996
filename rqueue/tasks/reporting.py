"""What a running job says of itself, on its way to who sends it."""

from __future__ import annotations

from typing import Protocol

from rqueue.model.progress import Report

__all__ = ["AttemptReport", "Reports"]


class AttemptReport(Protocol):
    """Of one attempt. From any thread, and from the event loop: nothing is waited for."""

    def progress(self, report: Report) -> None:
        """This is how far it is. Nothing comes of it once the attempt is over."""

    def log(self, level: int, text: str) -> None:
        """A line; the same holds of it."""


class Reports(Protocol):
    """Of the worker: sends what its jobs report."""

    def of(self, id: str, delivery: int) -> AttemptReport:
        """The report of a job that runs, and was delivered so many times."""
