"""The list of a lake's files: which of them count, and how far the lake is.

::

    _spark_metadata/1008.compact    a whole list
    _spark_metadata/1009            files that are added to it
    _spark_metadata/1010            and more of them
    _spark_metadata/2017.compact    the next whole list

It is written the way that Spark's own file sink writes it, so that `spark.read.parquet(lake)` reads
exactly what is listed; our numbers stand beside Spark's in each line. The newest whole list and all
that was added since are what the lake holds. Every `_SPAN`-th number is a whole list's, and what
comes behind it belongs to it: Spark takes the distance of the two newest whole lists for that span
(so two of them always stay), and of a single one the least divisor of its place that is not below a
setting of its own, hence a prime.

**What a commit writes** does not grow with the lake's age: files that are added are one small list.
A whole one is due after as many lines as the one before had, so that a line is written about three
times in all, or after `_MOST_ADDED` lists, which is what readers bear. Files can only go with a
whole list (Spark knows no other way); a step that takes files away takes many at once (see
`rqueue.pipeline.archive.compact`).

**Of two writers one waits, neither overwrites.** Each change first takes the number behind the last
one, which only one can: with the files that it adds, or, where a whole list is due, with an empty
list. An empty list thus says that a whole one comes next and nothing else, so all who see it try to
write that same one; if its writer was killed, the next one writes it.

Knows nothing of Spark or Java but the format.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Protocol
from urllib.parse import quote

from rqueue.pipeline.errors import LakeError
from rqueue.pipeline.lake.files import FileInfo

__all__ = ["Entry", "Expired", "FileList", "Folder", "LakeFile", "Snapshot"]

_LISTS = "_spark_metadata"
_LIST = re.compile(r"(\d+)(\.compact)?")
_SPAN = 1009  # a prime, see above
_MOST_ADDED = 500
_FEW_ADDED = 10  # so many small lists are no trouble for any reader
_LOOKS = 10
_HEAD = "v1"
_UNQUOTED = "/=:@!$&'()*+,;~"


class Folder(Protocol):
    """The operations that the list needs of a lake's folder; see
    `rqueue.pipeline.lake.files.Files`."""

    def path(self, name: str) -> str:
        """The full path of a file."""

    def url(self) -> str:
        """The folder as a URL, escaped."""

    def names(self, folder: str) -> list[str]:
        """The names directly in a folder of it."""

    def find(self, folder: str) -> list[FileInfo]:
        """All files below a folder of it."""

    def read_text(self, name: str) -> str | None:
        """A whole file; None if there is none."""

    def create(self, name: str, text: str) -> bool:
        """Write a new file, which appears whole or not at all; False if there is one already."""


class Entry(NamedTuple):
    """The id of a stream entry; they compare by age."""

    ms: int
    number: int

    @classmethod
    def of(cls, text: str) -> Entry:
        """Read `ms-number`."""
        ms, _, number = text.partition("-")
        return cls(int(ms), int(number or 0))

    def __str__(self) -> str:
        return f"{self.ms}-{self.number}"


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A data file that belongs to the lake. name: below the lake's folder; last: newest entry."""

    name: str
    size: int
    modified_ms: int
    date: date
    queue: str
    rows: int
    last: Entry

    @property
    def folder(self) -> str:
        """Its folder, which stands for a date and a queue."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The contents of the lake at one moment.

    version: number of its list, -1 while there is none; moved: a list was made while the lake stood
    elsewhere; whole: how many of the files the whole list names; sealed: a whole list comes next.
    """

    version: int
    moved: bool
    files: tuple[LakeFile, ...]
    whole: int = 0
    sealed: bool = False

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return sum(file.rows for file in self.files)

    def rows_of_queues(self) -> dict[str, int]:
        """How many rows of each queue it holds."""
        rows: Counter[str] = Counter()
        for file in self.files:
            rows[file.queue] += file.rows
        return rows

    def marks(self) -> dict[str, Entry]:
        """The newest entry of each queue."""
        marks: dict[str, Entry] = {}
        for file in self.files:
            marks[file.queue] = max(marks.get(file.queue, file.last), file.last)
        return marks


class Expired(NamedTuple):
    """Files that were replaced long ago. named: files of lists that may still be read; files: those
    that only older lists name; lists: these lists, in the order in which they may be deleted."""

    named: set[str]
    files: set[str]
    lists: list[str]


class FileList:
    """The list of the lake in a folder. Raises LakeError for one that cannot be read."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._root_url = folder.url()
        self._known = _NOTHING

    def version(self) -> int:
        """The number of the newest list; -1 while there is none."""
        names = filter(_LIST.fullmatch, self._folder.names(_LISTS))
        newest = max(names, key=lambda name: int(name.removesuffix(".compact")), default=None)
        return -1 if newest is None else self._number(newest)

    def snapshot(self) -> Snapshot:
        """The contents of the lake now. Reads only lists that were not read before."""
        version = -1
        for _ in range(_LOOKS):
            version = self.version()
            snapshot = self._at(version)
            if snapshot is not None:
                self._known = snapshot
                return snapshot
            # a list was cleaned away just now, for there is a newer one
        raise LakeError(f"{self._folder.path(_LISTS)}: a list before {version} is missing")

    def commit(
        self, before: Snapshot, added: Iterable[LakeFile], gone: Collection[str] = ()
    ) -> bool:
        """Let the lake hold these files too, and those that are `gone` (names) no longer, if it
        still is what `before` says; else False and nothing has changed."""
        added = tuple(added)
        if not (added or gone):
            return self.version() == before.version
        number = before.version + 1
        if not (gone or _whole_is_due(before)):
            if not self._write(number, added):
                return False
            files = before.files + added
            self._known = Snapshot(number, False, files, before.whole)
            return True
        if before.version >= 0 and not before.sealed and not self._write(number, ()):
            return False
        number = _whole_of(before.version) + _SPAN
        files = tuple(file for file in before.files if file.name not in gone) + added
        if not self._write(number, files):
            return False
        self._known = Snapshot(number, False, files, len(files))
        return True

    def expired(self, before_ms: int) -> Expired:
        """The files that were replaced before that time (ms since the epoch), and may be deleted:
        first the files, then the lists. The two newest whole lists stay, since Spark counts by
        them."""
        spans: dict[int, list[int]] = defaultdict(list)
        made: dict[int, int] = {}
        for file in self._folder.find(_LISTS):
            if _LIST.fullmatch(file.name):
                number = self._number(file.name)
                spans[_whole_of(number)].append(number)
                made[number] = file.modified_ms
        found = Expired(set(), set(), [])
        order = sorted(spans)
        for index, whole in enumerate(order):
            numbers = sorted(spans[whole])
            newest = index == len(order) - 1
            replaced = not newest and made.get(order[index + 1], before_ms) < before_ms
            for number in numbers:
                text = self._folder.read_text(_name(number))
                if text is not None:
                    names = {file.name for file in self._parsed(number, text)[0]}
                    (found.files if replaced else found.named).update(names)
            if replaced:
                found.lists.extend(_name(number) for number in numbers if number != whole)
                if index < len(order) - 2:
                    found.lists.append(_name(whole))
        found.files.difference_update(found.named)
        return found

    # -- lists of one number -----------------------------------------------------------------------

    def _number(self, name: str) -> int:
        number = int(name.removesuffix(".compact"))
        if _name(number) != f"{_LISTS}/{name}" or number < _SPAN - 1:
            raise self._strange(f"{_LISTS}/{name}", "it is numbered in another way")
        return number

    def _at(self, version: int) -> Snapshot | None:
        """The contents of the lake at a version, if all its lists are there."""
        if version < 0:
            return _NOTHING
        whole = _whole_of(version)
        begun = self._known
        if begun.version > version or _whole_of(begun.version) != whole:
            read = self._read(whole)
            if read is None:
                return None
            begun = Snapshot(whole, read[1], read[0], len(read[0]))
        if begun.version == version:
            return begun
        files, moved, sealed = list(begun.files), begun.moved, begun.sealed
        for number in range(begun.version + 1, version + 1):
            read = self._read(number)
            if read is None:
                return None
            files += read[0]
            moved, sealed = moved or read[1], not read[0]
        return Snapshot(version, moved, tuple(files), begun.whole, sealed)

    def _read(self, number: int) -> tuple[tuple[LakeFile, ...], bool] | None:
        text = self._folder.read_text(_name(number))
        return None if text is None else self._parsed(number, text)

    def _write(self, number: int, files: Iterable[LakeFile]) -> bool:
        return self._folder.create(_name(number), "\n".join([_HEAD, *map(self._line, files)]))

    def _line(self, file: LakeFile) -> str:
        return json.dumps(
            {
                "path": self._url(file.name),
                "size": file.size,
                "isDir": False,
                "modificationTime": file.modified_ms,
                "blockReplication": 1,
                "blockSize": 128 * 1024**2,
                "action": "add",
                "name": file.name,
                "date": file.date.isoformat(),
                "queue": file.queue,
                "rows": file.rows,
                "last": str(file.last),
            }
        )

    def _url(self, name: str) -> str:
        return f"{self._root_url}/{quote(name, safe=_UNQUOTED)}"

    def _parsed(self, number: int, text: str) -> tuple[tuple[LakeFile, ...], bool]:
        """The files of a list, and whether it was made while the lake stood elsewhere."""
        head, *lines = text.splitlines() or [""]
        moved = False
        files = []
        try:
            if head != _HEAD:
                raise ValueError(f"it begins with {head!r}")
            for line in lines:
                said = json.loads(line)
                name = said["name"]
                files.append(
                    LakeFile(
                        name,
                        said["size"],
                        said["modificationTime"],
                        date.fromisoformat(said["date"]),
                        said["queue"],
                        said["rows"],
                        Entry.of(said["last"]),
                    )
                )
                moved = moved or said["path"] != self._url(name)
        except (ValueError, KeyError, TypeError) as error:
            raise self._strange(_name(number), error) from None
        return tuple(files), moved

    def _strange(self, name: str, why: object) -> LakeError:
        return LakeError(f"{self._folder.path(name)} is no list of a lake of rqueue: {why}")


_NOTHING = Snapshot(-1, False, ())


def _whole_is_due(before: Snapshot) -> bool:
    if before.version < 0 or before.moved or before.sealed:
        return True
    lists = before.version - _whole_of(before.version)
    lines = len(before.files) - before.whole
    return lists >= _MOST_ADDED or (lists >= _FEW_ADDED and lines >= before.whole)


def _whole_of(number: int) -> int:
    """The number of the whole list to which a list belongs: itself, or the one before."""
    return (number + 1) // _SPAN * _SPAN - 1


def _name(number: int) -> str:
    return f"{_LISTS}/{number}{'.compact' if _whole_of(number) == number else ''}"
