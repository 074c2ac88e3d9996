"""The archiver: it carries history from Redis into the lake, each row once."""

from rqueue.pipeline.archive.archiver import archive

__all__ = ["archive"]
