"""Errors for parts that Spark lacks, and for rows that a stream of history has lost."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from typing import Any

from rqueue import errors
from rqueue.errors import RQueueError

__all__ = [
    "HistoryLost",
    "JavaMissing",
    "SparkGone",
    "SparkMissing",
    "error_of_text",
    "java_ended",
    "spark_is_gone",
]

_OURS = re.compile(r"^(?:\w+Error: )?rqueue\.(?:[a-z_]+\.)*([A-Z]\w+): ?(.*)$", re.M)


def error_of_text(text: str) -> RQueueError | None:
    """The error of rqueue that another process raised, in Spark's text about it.

    The name of its class is its code. One that is not of `rqueue.errors` or of this module is an
    RQueueError. None: it is not one of ours.
    """
    found = _OURS.findall(text)
    if not found:
        return None
    name, said = found[-1]
    kind = getattr(errors, name, None) or globals().get(name)
    if not (isinstance(kind, type) and issubclass(kind, RQueueError)):
        kind = RQueueError
    return kind.reported(said)


def java_ended(wait_s: float = 0.0) -> bool:
    """Whether the Java that this process started for Spark has ended, or does within so long."""
    process = _java()
    if process is None:
        return False
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def spark_is_gone(error: BaseException) -> bool:
    """Whether an error says that nothing of Spark answers any more."""
    lost = any(
        kind.__name__ == "Py4JNetworkError" or issubclass(kind, ConnectionError)
        for kind in type(error).__mro__
    )
    return (lost and not isinstance(error, RQueueError)) or java_ended()


def _java() -> Any:
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    return getattr(SparkContext._gateway, "proc", None)


class SparkMissing(RQueueError):
    """PySpark or pyarrow is not installed, or too old; says what to install."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; pip install 'rqueue[spark]'")


class JavaMissing(RQueueError):
    """There is no Java that Spark can run on; says what to install."""


class SparkGone(RQueueError):
    """The Java that Spark runs in has ended, and everything of Spark with it."""

    def __init__(self) -> None:
        code = getattr(_java(), "returncode", None)
        how = f" by {signal.Signals(-code).name}" if code is not None and code < 0 else ""
        super().__init__(
            f"Spark is gone: its Java was ended{how}, for instance for want of memory. Start "
            "again: nothing is lost, and nothing is done twice"
        )


class HistoryLost(RQueueError):
    """Redis trimmed rows of a queue's history before they were read.

    `queue` is its name; `wanted` the id of the entry after which reading was to go on; `trimmed`
    the id of the newest entry that is gone; `first` the oldest one that is left, "" without one.
    """

    def __init__(self, queue: str, wanted: str, trimmed: str, first: str) -> None:
        left = f"the oldest one left is {first}" if first else "none is left"
        super().__init__(
            f"history of queue '{queue}' is lost: the stream was to go on after entry {wanted}, "
            f"Redis has trimmed all up to {trimmed}, and {left}. To go on without the rows that "
            "are gone, set failOnDataLoss=false; to keep more of them, raise the queue's "
            "history_rows_max"
        )
        self.queue = queue
        self.wanted = wanted
        self.trimmed = trimmed
        self.first = first
