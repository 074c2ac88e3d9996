"""The list of a lake's files: what a commit costs, kills at every step, writers at once. No Java:
the lists are files of a folder."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest

from rqueue.pipeline.errors import LakeError
from rqueue.pipeline.lake import file_list as lists
from rqueue.pipeline.lake.file_list import Entry, FileList, LakeFile, Snapshot
from rqueue.pipeline.lake.files import FileInfo


class Disk:
    """A folder of this machine. written: bytes; read: names; step: called around each creation."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.written = 0
        self.read: list[str] = []
        self.step: Callable[[], None] = lambda: None

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def url(self) -> str:
        return self.root.as_uri()

    def names(self, folder: str) -> list[str]:
        return os.listdir(self.root / folder) if (self.root / folder).exists() else []

    def find(self, folder: str) -> list[FileInfo]:
        return [
            FileInfo(file.name, file.stat().st_size, file.stat().st_mtime_ns // 1_000_000)
            for file in (self.root / folder).iterdir()
        ]

    def read_text(self, name: str) -> str | None:
        self.read.append(name)
        try:
            return (self.root / name).read_text()
        except FileNotFoundError:
            return None

    def create(self, name: str, text: str) -> bool:
        self.step()
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        try:
            with path.open("x") as file:
                file.write(text)
        except FileExistsError:
            return False
        self.written += len(text)
        self.step()
        return True


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def file_of(number: int, queue: str = "q", rows: int = 1) -> LakeFile:
    day = date(2026, 1, 1) + timedelta(number % 365)
    name = f"date={day}/queue={queue}/part-00000-0d2f8a52-{number:06}.zstd.parquet"
    return LakeFile(name, 2000, 0, day, queue, rows, Entry(number, 0))


def as_spark_reads(root: Path) -> list[str]:
    """The files that Spark takes, by the rules of its `CompactibleFileStreamLog`."""
    folder = root / "_spark_metadata"
    names = {int(name.removesuffix(".compact")): name for name in os.listdir(folder)}
    whole = sorted(number for number, name in names.items() if name.endswith(".compact"))
    if len(whole) > 1:
        span = whole[-1] - whole[-2]
    else:
        place = whole[0] + 1
        span = next((n for n in range(10, place // 2 + 1) if place % n == 0), place)
    newest = max(names)
    found = []
    for number in range((newest + 1) // span * span - 1, newest + 1):
        name = f"{number}.compact" if (number + 1) % span == 0 else str(number)
        head, *lines = (folder / name).read_text().splitlines()
        assert head == "v1"
        found += [json.loads(line)["path"] for line in lines]
    return [path.removeprefix(f"{root.as_uri()}/") for path in found]


def names_in(snapshot: Snapshot) -> list[str]:
    return [file.name for file in snapshot.files]


# -- what it costs ---------------------------------------------------------------------------------


def test_what_a_commit_writes_does_not_grow_with_the_lake(disk: Disk) -> None:
    """20,000 files, then a thousand batches of one file, and a hundred of fifty."""
    lake = FileList(disk)
    assert lake.commit(lake.snapshot(), map(file_of, range(20_000)))
    line = disk.written / 20_000
    for batches, files in ((1000, 1), (100, 50)):
        disk.written, most = 0, []
        for number in range(batches):
            before = disk.written
            added = [file_of(100_000 * files + number * files + one) for one in range(files)]
            assert lake.commit(lake.snapshot(), added)
            most.append(disk.written - before)
        # but for the whole lists, of which there are few
        assert sorted(most)[-4] <= (files + 1) * line
        assert disk.written / batches <= 50 * line * files, "a whole list each time is 20,000 lines"
    assert len(FileList(disk).snapshot().files) == 26_000
    assert sorted(as_spark_reads(disk.root)) == sorted(names_in(FileList(disk).snapshot()))


def test_a_lake_that_begins_writes_each_line_about_three_times(disk: Disk) -> None:
    lake = FileList(disk)
    for number in range(1000):
        assert lake.commit(lake.snapshot(), [file_of(number)])
    line = len(lake._line(file_of(1))) + 1
    assert disk.written < 4 * 1000 * line
    assert len(as_spark_reads(disk.root)) == 1000


def test_what_was_read_is_not_read_again(disk: Disk) -> None:
    lake, reader = FileList(disk), FileList(disk)
    for number in range(5):
        assert lake.commit(lake.snapshot(), [file_of(number)])
    assert reader.snapshot() == lake.snapshot()
    disk.read.clear()
    assert lake.commit(lake.snapshot(), [file_of(5)])
    assert len(reader.snapshot().files) == 6
    assert disk.read == ["_spark_metadata/1013"]


# -- kills, and writers at once --------------------------------------------------------------------


class Killed(BaseException):
    pass


class Course:
    """Writers that add and merge files, one in the middle of the other, and are killed; the truth
    is which rows are in. A row is a number, a file's name says which rows it holds."""

    def __init__(self, disk: Disk, seed: int) -> None:
        self.disk, self.dice = disk, random.Random(seed)
        self.writers = [FileList(disk) for _ in range(3)]
        self.sure: set[int] = set()
        self.perhaps: list[set[int]] = []
        self.rows = self.merges = self.depth = 0
        disk.step = self.step

    def step(self) -> None:
        what = self.dice.random()
        if what < 0.15:
            raise Killed
        if what < 0.35 and self.depth < 2:
            self.write()

    def write(self) -> None:
        self.depth += 1
        which = self.dice.randrange(len(self.writers))
        writer, self.writers[which] = self.writers[which], FileList(self.disk)  # its memory is lost
        new: set[int] = set()
        try:
            now = writer.snapshot()
            if len(now.files) > 1 and self.dice.random() < 0.3:
                old = self.dice.sample(now.files, 2)
                self.merges += 1
                name = "+".join([*(file.name for file in old), f"m{self.merges}"])
                done = writer.commit(now, [self.file(name)], {file.name for file in old})
            else:
                self.rows += 1
                new = {self.rows}
                done = writer.commit(now, [self.file(str(self.rows))])
            if done:
                self.sure |= new
                self.writers[which] = writer
        except Killed:
            self.perhaps.append(new)
        finally:
            self.depth -= 1

    def file(self, name: str) -> LakeFile:
        return LakeFile(name, 1, 0, date(2026, 1, 1), "q", 1, Entry(1, 0))

    def check(self) -> None:
        for reader in (*self.writers, FileList(self.disk)):
            names = names_in(reader.snapshot())
            rows = [int(part) for name in names for part in name.split("+") if part[0] != "m"]
            assert len(rows) == len(set(rows)), "a row twice"
            assert self.sure <= set(rows), "a row lost"
            assert set(rows) <= self.sure.union(*self.perhaps), "a row from nowhere"
            if names:
                read = [path.replace("%2B", "+") for path in as_spark_reads(self.disk.root)]
                assert read == names, "Spark reads something else"

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.write()
            self.check()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole lists are due often."""
    monkeypatch.setattr(lists, "_MOST_ADDED", 6)
    monkeypatch.setattr(lists, "_FEW_ADDED", 2)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("seed", range(12))
def test_writers_at_once_that_are_killed(disk: Disk, seed: int) -> None:
    course = Course(disk, seed)
    course.run(60)
    assert course.merges > 5
    assert len(course.sure) > 5


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("fault", ["no empty list first", "an empty list is like any"])
def test_the_course_finds_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == "no empty list first":
        write = FileList._write
        monkeypatch.setattr(
            FileList,
            "_write",
            lambda self, number, files: files == () or write(self, number, files),
        )
    else:
        due = lists._whole_is_due

        def forgetful(before: Snapshot) -> bool:
            return due(before) and not (before.sealed and before.version > 0)

        monkeypatch.setattr(lists, "_whole_is_due", forgetful)
    found = 0
    for seed in range(30):
        (tmp_path / str(seed)).mkdir()
        try:
            Course(Disk(tmp_path / str(seed)), seed).run(60)
        except AssertionError as error:
            assert "a row " in str(error)
            found += 1
            break
    assert found


def test_an_empty_list_stands_for_a_whole_one_to_come(disk: Disk) -> None:
    """A writer is killed between the two: the next one writes the whole list."""
    lake = FileList(disk)
    assert lake.commit(lake.snapshot(), [file_of(1), file_of(2)])
    steps = iter([None, None, Killed])

    def third() -> None:
        if (kill := next(steps)) is not None:
            raise kill

    disk.step = third
    with pytest.raises(Killed):
        lake.commit(lake.snapshot(), [file_of(3)], {file_of(1).name})
    disk.step = lambda: None
    assert names_in(lake.snapshot()) == [file_of(1).name, file_of(2).name]
    assert lake.snapshot().sealed
    assert lake.commit(lake.snapshot(), [file_of(4)])
    assert sorted(disk.names("_spark_metadata")) == ["1008.compact", "1009", "2017.compact"]
    assert names_in(FileList(disk).snapshot()) == [file_of(one).name for one in (1, 2, 4)]


# -- old lists -------------------------------------------------------------------------------------


def test_old_lists_go_and_the_two_newest_whole_ones_stay(disk: Disk) -> None:
    lake = FileList(disk)
    for number in range(3):
        assert lake.commit(lake.snapshot(), [file_of(number)])
    for number in range(3):  # each takes one away, so each is a whole list
        assert lake.commit(lake.snapshot(), [file_of(10 + number)], {file_of(number).name})
    folder = disk.root / "_spark_metadata"
    for file in folder.iterdir():
        os.utime(file, (1000, 1000))
    assert lake.expired(1_000_000) == (
        {file_of(n).name for n in (0, 1, 2, 10, 11, 12)}, set(), [],
    )  # fmt: skip
    expired = lake.expired(1_000_001)
    assert expired.named == {file_of(n).name for n in (10, 11, 12)}
    assert expired.files == {file_of(n).name for n in (0, 1, 2)}
    for name in expired.lists:
        (disk.root / name).unlink()
        assert len(as_spark_reads(disk.root)) == 3
        assert FileList(disk).snapshot() == lake.snapshot()
    assert sorted(path.name for path in folder.iterdir()) == ["3026.compact", "4035.compact"]
    assert lake.commit(lake.snapshot(), [file_of(20)])
    assert len(as_spark_reads(disk.root)) == 4


def test_a_list_that_is_missing_or_numbered_in_another_way(disk: Disk) -> None:
    lake = FileList(disk)
    for number in range(3):
        assert lake.commit(lake.snapshot(), [file_of(number)])
    folder = disk.root / "_spark_metadata"
    (folder / "1009").unlink()
    with pytest.raises(LakeError, match="a list before 1010 is missing"):
        FileList(disk).snapshot()
    (folder / "1010").rename(folder / "1010.compact")
    with pytest.raises(LakeError, match=r"1010\.compact is no list .*: it is numbered in another"):
        FileList(disk).snapshot()
