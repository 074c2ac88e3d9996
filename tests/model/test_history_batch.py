import json
import random
import tracemalloc
import zlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import Undecodable
from rqueue.model.history_batch import (
    COLUMNS,
    NAMES,
    ZIPPED,
    pack,
    read_entry,
    unpack,
    unpack_columns,
    unpack_rows,
)
from rqueue.model.ids import digits62, new_id

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
UUIDS = st.uuids().map(str)
ODD_IDS = st.one_of(
    UUIDS.map(str.upper),
    UUIDS.map(lambda id: id.replace("-", "")),
    UUIDS.map(lambda id: id[:8] + " " + id[9:]),
    UUIDS.map(lambda id: id[:7] + "-" + id[7] + id[9:]),
    UUIDS.map(lambda id: "é" + id[2:]),
    st.just("-" * 36),
)
MADE = st.builds(new_id)
TIMES = st.integers(0, 9 * 10**12)
COUNTS = st.integers(0, 2**31 - 1)
VALUES = {str: TEXT, int: COUNTS, dict: st.dictionaries(TEXT, TEXT, max_size=2)}


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(0, 12))
    same = st.text(min_size=2, max_size=2)
    kind = draw(st.sampled_from([UUIDS, TEXT, UUIDS | TEXT, UUIDS | ODD_IDS, MADE, same]))
    columns: dict[str, Any] = {"id": draw(st.lists(kind, min_size=count, max_size=count))}
    for column in COLUMNS[1:]:
        values = TIMES if column.unit == "ms" else VALUES[column.type]
        form = draw(st.sampled_from(["left out", "one", "list"]))
        if form == "one":
            columns[column.name] = draw(values)
        elif form == "list":
            columns[column.name] = draw(st.lists(values, min_size=count, max_size=count))
    return columns


def expected(columns: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for index in range(len(columns["id"])):
        row = {}
        for column in COLUMNS:
            value = columns.get(column.name, column.type())
            row[column.name] = value[index] if isinstance(value, list) else value
        rows.append(row)
    return rows


@given(batches())
def test_rows_come_back(columns: dict[str, Any]) -> None:
    before = {name: list(c) if isinstance(c, list) else c for name, c in columns.items()}
    data = pack(columns)
    assert columns == before
    rows = expected(columns)
    assert unpack(data) == rows
    assert list(unpack_rows(data)) == [tuple(row.values()) for row in rows]
    assert list(unpack_columns(data)) == list(NAMES)


@given(batches(), st.sets(st.integers(0, 15)))
def test_refused_rows_are_left_out(columns: dict[str, Any], refused: set[int]) -> None:
    rows = [row for index, row in enumerate(expected(columns)) if index not in refused]
    assert unpack(pack(columns), refused) == rows


def realistic(count: int) -> dict[str, Any]:
    draw = random.Random(7)
    start = finish = 1_700_000_005_000
    columns: dict[str, Any] = {name: [] for name in ("enqueued", "started", "finished", "task")}
    columns["body_size"] = []
    enqueued = 1_700_000_000_000
    for _ in range(count):
        enqueued += draw.randrange(20)
        start = finish + draw.randrange(2)
        finish = start + draw.randrange(30)
        columns["enqueued"].append(enqueued)
        columns["started"].append(start)
        columns["finished"].append(finish)
        columns["task"].append(draw.choice(["app.mail.welcome", "app.mail.remind", "app.sums.add"]))
        columns["body_size"].append(draw.randrange(90, 300))
    # The worst case for ids: each made in a millisecond of its own, so half of each is random.
    columns["id"] = [
        digits62(ms, 7) + digits62(draw.getrandbits(48), 7) for ms in columns["enqueued"]
    ]
    columns.update(queue="default", outcome="ack", level=4, acquired=columns["started"][0])
    columns.update(worker="host-12:34567")
    return columns


def test_a_row_is_small() -> None:
    assert len(pack(realistic(100))) / 100 <= 33
    burst = {**realistic(100), "id": [new_id() for _ in range(100)]}
    assert len(pack(burst)) / 100 <= 20


@pytest.mark.parametrize(
    "columns",
    [
        {"id": ["a"], "colour": "red"},
        {"id": ["a"], "task": ["x", "y"]},
        {"id": ["a", "b"], "started": [1]},
    ],
)
def test_wrong_columns_are_refused(columns: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="history column"):
        pack(columns)


@pytest.mark.parametrize("count", [0, 1, ZIPPED - 1, ZIPPED, ZIPPED + 1])
def test_small_batches_are_not_compressed_and_read_all_the_same(count: int) -> None:
    ids = [f"job {number}" for number in range(count)]
    data = pack({"id": ids, "task": "t"})
    assert data[:1] == (b"\x02" if count < ZIPPED else b"\x01")
    assert [row["id"] for row in unpack(data)] == ids


def packed(parts: Any, raw: bytes = b"") -> bytes:
    return b"\x01" + zlib.compress(orjson.dumps(parts) + b"\0" + raw)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x03" + pack({"id": ["a"]})[1:],
        b"\x02{",
        pack({"id": ["a"] * ZIPPED})[:-6],
        b"\x01nothing",
        pack({"id": ["a", "b"]})[:-6],
        packed([]),
        packed({"a": 1}),
        packed(1),
        packed([1, ["a"], 0, 0, 0, 0, 0, 0]),
        packed([10**12, ["a"], *[0] * 17]),
        packed([10**12, 16, *[0] * 17], b"x" * 16),
        packed([2, 3, *[0] * 17], b"abcde"),
        packed([0, 3, *[0] * 17]),
        packed([1, 0, *[0] * 17]),
        packed([1, -1, *[0] * 17], b"a"),
        packed([1, 1, *[0] * 17], b"\xe9"),
        packed([1, None, *[0] * 17], b"a"),
        packed(["1", ["a"], *[0] * 17]),
        packed([1, ["a"], [1], *[0] * 16]),
        packed([2, ["a", "b"], [1, [1, 1]], *[0] * 16]),
        b"\x01" + zlib.compress(b"{"),
    ],
)
def test_broken_rows(data: bytes) -> None:
    with pytest.raises(Undecodable):
        unpack(data)


@given(st.binary())
def test_any_bytes_are_rows_or_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable):
        unpack(b"\x01" + data)


def test_entries_of_workers_and_of_scripts() -> None:
    batch = pack({"id": ["a", "b", "c"], "outcome": "ack", "queue": "q"})
    assert [row["id"] for row in read_entry({b"n": b"3", b"b": batch}, "q")] == ["a", "b", "c"]
    rest = read_entry({b"n": b"3", b"b": batch, b"r": b"0,2"}, "q")
    assert [row["id"] for row in rest] == ["b"]
    cause = {"type": "ValueError", "message": "bad"}
    lines = [
        {"id": "a", "outcome": "cancelled", "finished": 5},
        {"id": "b", "outcome": "dead", "cause": cause},
        {"id": "c", "outcome": "crash", "cause": {"kind": "crash"}},
    ]
    text = "\n".join(json.dumps(line) for line in lines).encode()
    rows = read_entry({b"n": b"3", b"j": text}, "q")
    assert [row["error"] for row in rows] == ["", "ValueError", "crash"]
    assert rows[0]["queue"] == "q"
    assert rows[0]["finished"] == 5
    assert set(rows[0]) == set(NAMES)
    assert rows[1]["cause"] == cause
    for broken in (b"{", b"[]", b'{"level":"high"}', b'{"labels":[]}', b'{"finished":1e99}'):
        with pytest.raises(Undecodable):
            read_entry({b"j": broken}, "q")
    with pytest.raises(Undecodable):
        read_entry({b"n": b"3", b"b": batch, b"r": b"0,x"}, "q")


NAMED = st.sampled_from(NAMES)
ANYTHING = st.none() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=3)


@given(st.dictionaries(NAMED, ANYTHING | st.dictionaries(st.text(), ANYTHING), max_size=4))
def test_a_row_of_wrong_types_is_undecodable(written: dict[str, Any]) -> None:
    line = json.dumps(written).encode()
    try:
        (row,) = read_entry({b"j": line}, "q")
    except Undecodable:
        return
    assert {type(row[column.name]) is column.type for column in COLUMNS} == {True}


def test_a_large_batch_keeps_what_it_can_of_its_bodies() -> None:
    bodies = ["a" * 3_000_000, "b" * 9_000_000, "c" * 3_000_000, "d" * 3_000_000, "e" * 1_000_000]
    rows = unpack(pack({"id": ["1", "2", "3", "4", "5"], "body": bodies}))
    assert [row["body"][:1] for row in rows] == ["a", "", "c", "", "e"]


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = b"\x01" + zlib.compress(b" " * 256 * 1024**2, 9)
    tracemalloc.start()
    try:
        with pytest.raises(Undecodable):
            unpack(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024**2
