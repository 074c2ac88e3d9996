"""What can be missing for Spark, and what a stream of history can lose."""

from __future__ import annotations

from rqueue.errors import RQueueError

__all__ = ["HistoryLost", "JavaMissing", "SparkMissing"]


class SparkMissing(RQueueError):
    """PySpark or pyarrow is not installed, or too old; says what to install."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; pip install 'rqueue[spark]'")


class JavaMissing(RQueueError):
    """There is no Java that Spark can run on; says what to install."""


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
