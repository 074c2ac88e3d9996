"""Files of a folder that Spark can reach: on this machine, on HDFS, in an object store.

A thin layer over Hadoop's FileSystem, which Spark brings along with every scheme that it reads.
Names are relative to the folder, with `/` between parts.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rqueue.pipeline.errors import LakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DRAFTS", "FileInfo", "Files"]

DRAFTS = "_rqueue/new/"
"""Where files are written that are to appear whole."""


class FileInfo(NamedTuple):
    """A file: its name, size in bytes, and when it was last written (ms since the epoch)."""

    name: str
    size: int
    modified_ms: int


class Files:
    """The files below `root`. Faults are raised as LakeError with the folder's name."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        if not root.strip():
            raise LakeError("a lake needs a path: a folder, or a URL that Spark reads")
        from pyspark.sql import SparkSession as Classic

        if not isinstance(spark, Classic):
            raise LakeError(
                "in a session of Spark Connect rqueue reaches no lake, for its files are read and "
                "written through the driver's Java. Archive with rqueue pipeline archive on a "
                f"machine of its own; read here by spark.read.parquet({root!r})"
            )
        jvm: Any = spark._jvm
        session: Any = spark._jsparkSession
        # whole names: else Java looks for classes `org`, `org.apache`, ... in all jars of Spark
        self._path: Any = getattr(jvm, "org.apache.hadoop.fs.Path")
        self._streams: Any = getattr(jvm, "org.apache.commons.io.IOUtils")
        with self._named(root):
            path = self._path(root)
            self._fs = path.getFileSystem(session.sessionState().newHadoopConf())
            self._root = self._fs.makeQualified(path)
            self.root: str = self._root.toString()
            self.local = Path(self._root.toUri().getPath()) if self._is_local() else None
            """The folder, where it is on a file system that this machine sees; else None."""

    def _is_local(self) -> bool:
        return str(self._root.toUri().getScheme()) == "file"

    def path(self, name: str) -> str:
        """The full path of a file, as Spark's readers and writers take it."""
        return f"{self.root}/{name}"

    def url(self) -> str:
        """The folder as a URL, escaped, without a `/` at its end."""
        return str(self._root.toUri().toString()).rstrip("/")

    def exists(self, name: str) -> bool:
        """Is there a file or folder of this name?"""
        with self._named(name):
            return bool(self._fs.exists(self._at(name)))

    def read_text(self, name: str) -> str | None:
        """A whole file as UTF-8; None if there is none."""
        with self._named(name):
            path = self._at(name)
            if not self._fs.exists(path):
                return None
            stream = self._fs.open(path)
            try:
                return str(self._streams.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create(self, name: str, text: str) -> bool:
        """Write a new file, which appears whole or not at all; False if there is one already.

        Of several that try at the same time one succeeds: surely on this machine and on HDFS. In an
        object store without a rename of its own the last one may win.
        """
        hidden = DRAFTS + uuid.uuid4().hex
        with self._named(name):
            if self.local is not None:
                draft, target = self.local / hidden, self.local / name
                draft.parent.mkdir(parents=True, exist_ok=True)
                target.parent.mkdir(parents=True, exist_ok=True)
                draft.write_text(text, encoding="utf-8")
                try:
                    os.link(draft, target)
                except FileExistsError:
                    return False
                finally:
                    draft.unlink()
                return True
            self._write(hidden, text)
            self._fs.mkdirs(self._at(name).getParent())
            if self._fs.exists(self._at(name)) or not self._fs.rename(
                self._at(hidden), self._at(name)
            ):
                self._fs.delete(self._at(hidden), False)
                return False
            return True

    def replace(self, name: str, text: str) -> None:
        """Write a file anew; readers see the old text or the new one."""
        with self._named(name):
            if self.local is not None:
                draft = self.local / (DRAFTS + uuid.uuid4().hex)
                draft.parent.mkdir(parents=True, exist_ok=True)
                draft.write_text(text, encoding="utf-8")
                (self.local / name).parent.mkdir(parents=True, exist_ok=True)
                draft.replace(self.local / name)
            else:
                self._write(name, text)

    def _write(self, name: str, text: str) -> None:
        stream = self._fs.create(self._at(name), True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def names(self, folder: str) -> list[str]:
        """The names directly in a folder; none if there is no such folder."""
        with self._named(folder):
            path = self._at(folder)
            if not self._fs.exists(path):
                return []
            return sorted(str(found.getPath().getName()) for found in self._fs.listStatus(path))

    def find(self, folder: str) -> list[FileInfo]:
        """All files below a folder, by their names below it."""
        with self._named(folder):
            if self.local is not None:
                return sorted(_below(self.local, folder))
            path = self._at(folder) if folder else self._root
            if not self._fs.exists(path):
                return []
            start = len(str(path.toUri().getPath()).rstrip("/")) + 1
            found, files = [], self._fs.listFiles(path, True)
            while files.hasNext():
                file = files.next()
                name = str(file.getPath().toUri().getPath())[start:]
                found.append(FileInfo(name, file.getLen(), file.getModificationTime()))
            return sorted(found)

    def move(self, name: str, to: str) -> None:
        """Move a file; it appears whole at its new place."""
        with self._named(name):
            target = self._at(to)
            self._fs.mkdirs(target.getParent())
            if not self._fs.rename(self._at(name), target):
                raise LakeError(f"{self.path(name)} could not be moved to {self.path(to)}")

    def delete(self, name: str) -> None:
        """Delete a file or a whole folder, if it is there."""
        with self._named(name):
            self._fs.delete(self._at(name), True)

    def _at(self, name: str) -> Any:
        return self._path(self._root, name)

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        try:
            yield
        except Py4JJavaError as error:
            said = str(error.java_exception.getMessage() or error.java_exception.toString())
            raise LakeError(f"{name}: {' '.join(said.split())}") from None
        except ConnectionError:
            raise  # Java is gone, of which a file's name says nothing
        except OSError as error:
            place = error.filename or self.path(name)
            raise LakeError(f"{place}: {error.strerror}") from None


def _below(root: Path, folder: str) -> Iterator[FileInfo]:
    """All files below a folder of this machine, but for Hadoop's checksums, which go with them.
    Hadoop itself would run `ls` for each."""
    top = root / folder
    for where, _, names in os.walk(top):
        for name in names:
            if name.startswith(".") and name.endswith(".crc"):
                continue
            path = Path(where, name)
            try:
                found = path.stat()
            except FileNotFoundError:  # deleted just now
                continue
            yield FileInfo(
                path.relative_to(top).as_posix(), found.st_size, found.st_mtime_ns // 1_000_000
            )
