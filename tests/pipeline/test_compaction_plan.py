"""Which folders of a lake are worth a compaction, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rqueue.pipeline.archive.compact import due, portions
from rqueue.pipeline.lake.file_list import Entry, LakeFile, Snapshot
from tests.pipeline.history_rows import DAY, FIRST, T0


def made_of(day: int, count: int, size: int = 10, queue: str = "q") -> list[LakeFile]:
    name = f"date={FIRST + timedelta(day)}/queue={queue}/part-"
    last = Entry(T0 + day * DAY, 0)
    return [
        LakeFile(f"{name}{n}.parquet", size, 0, FIRST + timedelta(day), queue, 1, last)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("files", "today", "counts"),
    [
        (made_of(0, 2) + made_of(1, 1), 1, [2]),  # a day that is over, and the queue is beyond it
        (made_of(0, 2), 1, []),  # more of yesterday may come: nothing of today is there
        (made_of(0, 2), 2, [2]),  # no more
        (made_of(0, 100), 0, []),
        (made_of(0, 101), 0, [101]),  # of today, but very many
        (made_of(0, 3, size=90) + made_of(1, 1), 1, []),  # three of 270 bytes are three again
        (made_of(0, 4, size=50) + made_of(1, 1), 1, [4]),  # two are enough for 200
        (made_of(0, 2, size=100) + made_of(1, 1), 1, []),  # large enough to be left alone
        (made_of(0, 1) + made_of(1, 1), 5, []),
    ],
)
def test_what_is_due(files: list[LakeFile], today: int, counts: list[int]) -> None:
    found = due(Snapshot(9, False, tuple(files)), FIRST + timedelta(today), target_bytes=100)
    assert [len(part) for part in found] == counts


def test_folders_are_merged_in_portions_that_are_worth_a_whole_list() -> None:
    """A tenth of the lake's files; an archiver waits until so many have come together."""
    old = [file for day in range(100) for file in made_of(day, 2)]  # 100 folders of 2
    rest = [file for day in range(100, 200) for file in made_of(day, 1)]
    snapshot = Snapshot(9, False, (*old, *rest))
    today = FIRST + timedelta(300)
    found = [len(portion) for portion in portions(snapshot, today)]
    assert found == [15] * 6 + [10]
    assert [len(p) for p in portions(snapshot, today, worthy=True)] == [15] * 6
    small = Snapshot(9, False, tuple(made_of(0, 2) + made_of(5, 3)))
    assert [len(portion) for portion in portions(small, today, worthy=True)] == [1, 1]
