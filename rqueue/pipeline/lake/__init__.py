"""The lake: history as Parquet files, which of them count, and how they are read."""

from rqueue.pipeline.lake.lake import read

__all__ = ["read"]
