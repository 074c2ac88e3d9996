"""The error that ended the archiver's query: can it be tried again, with the checkpoint that it
has?

Nothing that the archiver does depends on where it is interrupted, so that everything is tried again
that may go better the next time: a server that is away, a Python or a task of Spark that died.
An error that leaves a decision to a person (history that is lost, another archiver, wrong
options, a file of the lake that is broken) is not.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rqueue import errors
from rqueue.pipeline.errors import LakeError
from rqueue.pipeline.lake.lake import CHECKPOINT
from rqueue.spark.errors import SparkGone, error_of_text

if TYPE_CHECKING:
    from rqueue.pipeline.lake.files import Files

__all__ = [
    "Patience",
    "is_of_spark",
    "may_go_better",
    "put_checkpoint_aside",
]

HEALTHY_S = 30.0
"""A query that ran for so long has nothing to do with the failure before it."""

FIRST_S, LONGEST_S = 0.5, 15.0
"""Between two tries."""


def may_go_better(error: BaseException) -> bool:
    """True if the same may succeed the next time."""
    if isinstance(error, SparkGone | LakeError):
        return False
    if _is_spark(error):
        reported = error_of_text(str(error))
        if reported is None:
            return True
        error = reported
    server = isinstance(error, errors.ServerError)
    return server and not isinstance(error, errors.UnusableServer)


def _is_spark(error: BaseException) -> bool:
    return any(
        kind.__module__.startswith(("pyspark.errors", "py4j.protocol"))
        for kind in type(error).__mro__
    )


def is_of_spark(error: BaseException) -> bool:
    """True if Spark failed, and not a part of rqueue that ran in it."""
    return _is_spark(error) and error_of_text(str(error)) is None


def put_checkpoint_aside(files: Files) -> str:
    """Let the next query begin without one; the path of the old one. The lake knows what it holds,
    so that nothing comes twice."""
    aside = f"{CHECKPOINT}.broken-{round(time.time() * 1000)}"
    files.move(CHECKPOINT, aside)
    return files.path(aside)


class Patience:
    """How long a run goes on trying: for `seconds` without any progress."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._tries = 0

    @property
    def waited(self) -> float:
        """Seconds since the first failure in a row."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    def progress(self) -> None:
        """Something went well: what fails next is another matter."""
        self._since, self._tries = None, 0

    def failed(self, ran_s: float) -> float | None:
        """A query failed that ran for so long: seconds until the next try; None to give up."""
        if ran_s > HEALTHY_S:
            self.progress()
        if self._since is None:
            self._since = time.monotonic()
        left = self._seconds - self.waited
        if left <= 0:
            return None
        delay: float = min(LONGEST_S, FIRST_S * 2 ** min(self._tries, 10), left)
        self._tries += 1
        return delay
