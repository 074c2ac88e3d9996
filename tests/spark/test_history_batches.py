"""Rows of history as Arrow has them are those that the package's own reader gives."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import dumps, loads

from rqueue.errors import Undecodable
from rqueue.model.history_batch import COLUMNS, of_later_version, pack, read_entry
from rqueue.model.ids import new_id
from rqueue.spark.history.batches import HistoryBatches
from rqueue.spark.schemas import HISTORY_COLUMNS, arrow_schema

TIMES = ("enqueued", "due", "acquired", "started", "finished")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{c.name: st.sampled_from(["", "a", "b é"]) for c in COLUMNS if c.type is str},
    **{c.name: st.integers(0, 2) for c in COLUMNS if c.type is int},
    "labels": st.sampled_from([{}, {"tenant": "a"}, {"tenant": "b é", "gpu": "true"}]),
    **{name: st.sampled_from([0, 1_700_000_000_000, 1_700_000_000_001]) for name in TIMES},
}
MADE = st.builds(new_id)
IDS = st.one_of(
    MADE, st.uuids().map(str), st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
)


@st.composite
def packed(draw: st.DrawFn) -> dict[bytes, bytes]:
    """An entry of a worker, of which some rows were refused."""
    count = draw(st.integers(0, 12))
    ids = draw(st.sampled_from([MADE, st.uuids().map(str), IDS]))
    columns: dict[str, Any] = {"id": draw(st.lists(ids, min_size=count, max_size=count))}
    for column in COLUMNS[1:]:
        values = VALUES[column.name]
        if draw(st.booleans()):
            columns[column.name] = draw(st.lists(values, min_size=count, max_size=count))
        else:
            columns[column.name] = draw(values)
    fields = {b"n": b"%d" % count, b"b": pack(columns)}
    refused = draw(st.sets(st.integers(0, 11), max_size=3))
    if refused:
        fields[b"r"] = ",".join(map(str, sorted(refused))).encode()
    return fields


@st.composite
def written(draw: st.DrawFn) -> dict[bytes, bytes]:
    """An entry of a script."""
    names = draw(st.sets(st.sampled_from([c.name for c in COLUMNS[3:]]), max_size=4))
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        line = {"id": draw(IDS), **{name: draw(VALUES[name]) for name in sorted(names)}}
        if draw(st.booleans()):
            line["cause"] = {"kind": "limit"}
        lines.append(dumps(line))
    return {b"n": b"%d" % len(lines), b"j": b"\n".join(lines)}


@given(st.lists(packed() | written(), min_size=1, max_size=6))
def test_all_rows_with_all_their_columns(entries: list[dict[bytes, bytes]]) -> None:
    batches = HistoryBatches(HISTORY_COLUMNS)
    expected: list[dict[str, Any]] = []
    for number, fields in enumerate(entries):
        batches.add("q", f"7-{number}", fields)
        for row in read_entry(fields, "q"):
            expected.append({"cause": None, **row, "queue": "q", "entry": f"7-{number}"})
    assert batches.rows == len(expected)
    batch = batches.take()
    batch.validate(full=True)
    assert batch.schema == arrow_schema(HISTORY_COLUMNS)
    found = batch.to_pylist()
    for row in found:
        row["labels"] = dict(row["labels"] or ())
        del row["row"]
        for name in TIMES:
            row[name] = round(row[name].astimezone(UTC).timestamp() * 1000) if row[name] else 0
        for name in ("group", "share", "worker", "error", "body"):
            row[name] = row[name] or ""
        row["cause"] = row["cause"] and loads(row["cause"])
    assert found == expected
    assert (batches.rows, batches.take().num_rows) == (0, 0)


def test_rows_have_their_numbers_whatever_was_refused() -> None:
    batches = HistoryBatches(tuple(c for c in HISTORY_COLUMNS if c.name == "row"))
    many = 2000  # more than a worker settles at once
    for refused in ("", "0,3,1999"):
        columns = pack({"id": [f"{number}" for number in range(many)]})
        batches.add("q", "1-0", {b"b": columns, b"r": refused.encode()})
    kept = [number for number in range(many) if number not in (0, 3, 1999)]
    assert batches.take().column("row").to_pylist() == [*range(many), *kept]


@pytest.mark.parametrize("value", ["x", 2**40, None, {}])
@pytest.mark.parametrize("alone", [True, False])
def test_an_entry_that_is_no_history_is_one_damaged_row(value: Any, alone: bool) -> None:
    fields = {b"b": pack({"id": ["a", "b"], "level": value if alone else [1, value]})}
    batches = HistoryBatches(HISTORY_COLUMNS)
    batches.add("q", "5-6", fields)
    (row,) = batches.take().to_pylist()
    assert (row["outcome"], row["queue"], row["entry"]) == ("damaged", "q", "5-6")
    assert "column 'level'" in row["error"]


@given(st.dictionaries(st.sampled_from([b"b", b"j", b"r", b"n"]), st.binary()))
def test_any_fields_are_rows(fields: dict[bytes, bytes]) -> None:
    if of_later_version(fields):
        return
    batches = HistoryBatches(HISTORY_COLUMNS)
    batches.add("q", "5-6", fields)
    batches.take().validate(full=True)


def test_an_entry_of_a_later_version_is_not_taken_for_read() -> None:
    with pytest.raises(Undecodable, match=r"entry 5-6 of queue 'q'"):
        HistoryBatches(HISTORY_COLUMNS).add("q", "5-6", {b"b": b"\x09later"})


def test_a_batch_of_nothing() -> None:
    empty = HistoryBatches(HISTORY_COLUMNS).take()
    assert isinstance(empty, pa.RecordBatch)
    assert empty.num_rows == 0
