"""What each way of reading and writing gets: the options of a source, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["HistoryRead", "HistoryStream", "JobsRead", "JobsWrite", "Mode", "Place"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where Redis is, for every mode; see `rqueue.spark.access`. Times are seconds."""

    url: str | None
    namespace: str | None
    cluster: bool
    credentials_file: str | None
    connect_timeout: float
    command_timeout: float
    patience: float


@dataclass(frozen=True, kw_only=True)
class HistoryRead(Place):
    """`spark.read.format("rqueue-history")`."""

    queues: tuple[str, ...]
    since: str
    after: Mapping[str, str]
    until: str
    partition_rows: int


@dataclass(frozen=True, kw_only=True)
class HistoryStream(Place):
    """`spark.readStream.format("rqueue-history")`."""

    queues: tuple[str, ...]
    since: str
    partition_rows: int
    max_rows_per_batch: int
    fail_on_data_loss: bool


@dataclass(frozen=True, kw_only=True)
class JobsRead(Place):
    """`spark.read.format("rqueue")`."""

    queues: tuple[str, ...]
    states: tuple[str, ...]
    tasks: tuple[str, ...]
    levels: tuple[int, ...]
    partition_rows: int
    page_size: int
    max_rows_per_second: float | None


@dataclass(frozen=True, kw_only=True)
class JobsWrite(Place):
    """`df.write.format("rqueue")` and `writeStream`."""

    queue: str | None
    task: str | None
    run_id: str | None
    id_column: str | None
    batch_size: int
    max_rows_per_second: float | None
    remember: float
    bad_rows: str
    bad_rows_path: str | None


Mode = type[Place]
"""One of these classes."""
