"""Rows that are no jobs: named in an error, or put aside with the reason."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import orjson
from pyarrow import fs

from rqueue.errors import ConfigError, RQueueError
from rqueue.spark.write.rows import Bad

__all__ = ["BadRow", "SideOutput"]

SHOWN = 300
"""Characters of a row that an error shows."""

_URI = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


class BadRow(RQueueError):
    """A row that is no job ended a write. `row` is its number within `partition`, from 0."""

    def __init__(self, bad: Bad, run: str, partition: int) -> None:
        record = bad.record if len(bad.record) <= SHOWN else bad.record[:SHOWN] + "..."
        super().__init__(
            f"row {bad.row} of partition {partition} is no job: {bad.reason}. The row: {record}. "
            "What came before it in its partition is enqueued, and the other partitions are; write "
            f"again with option runId={run} (a stream goes on by itself) and nothing of that is "
            "enqueued twice. To put such rows aside instead, set badRows=side and badRowsPath"
        )
        self.row = bad.row
        self.reason = bad.reason
        self.partition = partition


class SideOutput:
    """Puts bad rows of one task into one file of a folder, JSON lines with the columns run, epoch,
    partition, row, reason, record (the row as JSON text).

    The file appears when the task has read all its rows, under a name made of run, epoch and
    partition: an attempt that comes again replaces it. `path` is a folder, or a URI of a file
    system that Arrow knows (`s3://`, `gs://`, `hdfs://`, `file://`).
    """

    def __init__(self, path: str, run: str, epoch: int, partition: int) -> None:
        self._path = path
        self._facts = {"run": run, "epoch": epoch, "partition": partition}
        self._name = f"{run}-{epoch}-{partition:05}.json"
        self._out: Any = None
        self.count = 0

    def _open(self) -> None:
        if _URI.match(self._path):
            self._files, folder = fs.FileSystem.from_uri(self._path)
        else:
            self._files, folder = fs.LocalFileSystem(), os.path.abspath(self._path)
        self._files.create_dir(folder, recursive=True)
        self._final = f"{folder.rstrip('/')}/{self._name}"
        # names that begin with "_" are none of a table's files
        self._draft = f"{folder.rstrip('/')}/_{self._name}-{uuid.uuid4().hex}"
        self._out = self._files.open_output_stream(self._draft)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Refusals of the file system, as ConfigError."""
        try:
            yield
        except (OSError, ValueError) as error:
            raise ConfigError("badRowsPath", f"cannot write to {self._path}: {error}") from None

    def add(self, bad: Bad) -> None:
        """Put a row aside. Raises ConfigError where nothing can be written."""
        line = {**self._facts, "row": bad.row, "reason": bad.reason, "record": bad.record}
        with self._told():
            if self._out is None:
                self._open()
            self._out.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        self.count += 1

    def publish(self) -> None:
        """All rows were read: the file is there, whole, or was there before. Raises ConfigError."""
        if self._out is not None:
            with self._told():
                self._publish()

    def _publish(self) -> None:
        self._out.close()
        self._out = None
        try:
            self._files.move(self._draft, self._final)
        except OSError:
            # some file systems do not replace
            if self._files.get_file_info(self._final).type != fs.FileType.File:
                raise
            self._files.delete_file(self._final)
            self._files.move(self._draft, self._final)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._out is not None:
            with suppress(OSError):  # on a full disk it cannot be closed either
                self._out.close()
            with suppress(OSError):
                self._files.delete_file(self._draft)
