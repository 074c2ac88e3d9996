"""Rows as jobs, without a running Spark: which columns, what they mean, what is wrong."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyspark.sql import types as st

from rqueue.errors import ConfigError
from rqueue.spark.write.rows import Bad, Job, Table
from rqueue.spark.write.writer import arrow_of

MAX = 1024**2


def schema(ddl: str) -> st.StructType:
    """Of the types that the tests use; Spark's own parser needs a JVM."""
    array, pair = st.ArrayType(st.StringType()), st.MapType(st.StringType(), st.StringType())
    kinds: dict[str, st.DataType] = {
        "string": st.StringType(),
        "int": st.IntegerType(),
        "long": st.LongType(),
        "double": st.DoubleType(),
        "timestamp": st.TimestampType(),
        "binary": st.BinaryType(),
        "decimal": st.DecimalType(10, 2),
        "date": st.DateType(),
        "interval": st.DayTimeIntervalType(),
        "array": array,
        "map": pair,
        "ints": st.MapType(st.IntegerType(), st.StringType()),
        "decimals": st.ArrayType(st.DecimalType(10, 2)),
        "struct": st.StructType(
            [
                st.StructField("a", st.LongType()),
                st.StructField("b", array),
                st.StructField("c", pair),
                st.StructField("d", st.DateType()),
            ]
        ),
    }
    fields = (part.split() for part in ddl.split(","))
    return st.StructType([st.StructField(name, kinds[kind]) for name, kind in fields])


def table(ddl: str, **more: Any) -> Table:
    options: dict[str, Any] = {"queue": "q", "task": "t", "id_column": None, "max_body": MAX}
    return Table.of(schema(ddl), **(options | more))


def read(ddl: str, *rows: tuple[Any, ...], **more: Any) -> list[Job | Bad]:
    arrow = arrow_of(schema(ddl))
    dicts = [dict(zip(arrow.names, row, strict=True)) for row in rows]
    batch = pa.RecordBatch.from_pylist(dicts, schema=arrow)
    return list(table(ddl, **more).jobs(batch))


def one(ddl: str, *row: Any, **more: Any) -> Job:
    (job,) = read(ddl, row, **more)
    assert isinstance(job, Job), job
    return job


def envelope(ddl: str, *row: Any, **more: Any) -> Any:
    return orjson.loads(one(ddl, *row, **more).body)


def reason(ddl: str, *row: Any, **more: Any) -> str:
    (bad,) = read(ddl, row, **more)
    assert isinstance(bad, Bad), bad
    return bad.reason


@pytest.mark.parametrize(
    ("ddl", "value", "args"),
    [
        ("args array", ["x", None], ["x", None]),
        ("args array", [], None),
        ("args array", None, None),
        ("args string", ' [1, {"a": null}] ', [1, {"a": None}]),
        ("args string", None, None),
        (
            "args struct",
            {"a": 1, "b": ["x"], "c": {"k": "v"}, "d": date(2030, 1, 31)},
            [1, ["x"], {"k": "v"}, "2030-01-31"],
        ),
    ],
)
def test_positional_arguments(ddl: str, value: Any, args: Any) -> None:
    assert envelope(ddl, value) == (["t"] if args is None else ["t", args])


@pytest.mark.parametrize(
    ("ddl", "value", "kwargs"),
    [
        ("kwargs map", {"a": "x", "b": None}, {"a": "x", "b": None}),
        ("kwargs string", '{"a": [1]}', {"a": [1]}),
        (
            "kwargs struct",
            {"a": 1, "b": None, "c": None, "d": None},
            {"a": 1, "b": None, "c": None, "d": None},
        ),
        ("kwargs map", None, None),
    ],
)
def test_arguments_by_name(ddl: str, value: Any, kwargs: Any) -> None:
    assert envelope(ddl, value) == (["t"] if kwargs is None else ["t", [], kwargs])


def test_maps_of_many_rows_stay_apart() -> None:
    rows = [({"a": "1"},), (None,), ({},), ({"b": "2", "c": "3"},)]
    arrow = arrow_of(schema("kwargs map"))
    batch = pa.RecordBatch.from_pylist([{"kwargs": row[0]} for row in rows], schema=arrow)
    found = [orjson.loads(job.body)[2:] for job in table("kwargs map").jobs(batch.slice(1))]  # type: ignore[union-attr]
    assert found == [[], [], [{"b": "2", "c": "3"}]]


@pytest.mark.parametrize(
    ("ddl", "value", "terms"),
    [
        ("level int", 9, "9,,0,"),
        ("level int", None, "4,,0,"),
        ("delay double", 1.5, "4,+1500,0,"),
        ("delay string", "10m", "4,+600000,0,"),
        ("delay interval", timedelta(seconds=90), "4,+90000,0,"),
        ("at timestamp", datetime(2030, 1, 31, tzinfo=UTC), "4,@1896048000000,0,"),
        ("at string", "2030-01-31T01:00:00+01:00", "4,@1896048000000,0,"),
        ("max_deliveries int", 3, "4,,3,"),
        ("max_crashes int", 2, "4,,0:2,"),
    ],
)
def test_what_the_queue_must_know(ddl: str, value: Any, terms: str) -> None:
    assert one(ddl, value).terms == terms


def test_what_travels_with_the_job() -> None:
    ddl = "headers map, labels string, time_limit string, keep double, group string"
    row = ({"a": "x", "b": None}, '{"n": 1}', "1m", 5.0, None)
    opts = {"headers": {"a": "x"}, "labels": {"n": 1}, "time_limit": 60.0, "keep": 5.0}
    assert envelope(ddl, *row) == ["t", [], {}, opts]
    assert envelope(ddl, None, None, None, None, None) == ["t"]


def test_queue_task_and_id_of_the_row() -> None:
    job = one("queue string, task string, key string", "q2", "t2", "k", id_column="key")
    assert (job.queue, job.id, orjson.loads(job.body)) == ("q2", "k", ["t2"])
    assert one("id string", "mine").id == "mine"


@pytest.mark.parametrize(
    ("ddl", "value", "says"),
    [
        ("task string", None, "task: is null"),
        ("task string", "", "task: is empty"),
        ("queue string", None, "queue: is null"),
        ("queue string", "a\0b", "contains a NUL"),
        ("id string", None, "id: is null"),
        ("id string", "x" * 600, "at most 512"),
        ("args string", "[1", "args: is no JSON"),
        ("args string", '{"a": 1}', "args: is not a JSON array"),
        ("kwargs string", "[]", "kwargs: is not a JSON object"),
        ("args string", f'["{"x" * MAX}"]', "at most 1,048,576"),
        ("level int", 10, "level: 10 is no whole number from 0 to 9"),
        ("delay double", -1.0, "delay: -1.0 is negative"),
        ("delay string", "soon", "delay: 'soon' is no duration"),
        ("at string", "10m", "at: '10m' is no time"),
        ("max_deliveries int", -1, "-1"),
        ("max_crashes int", -1, "max_crashes: -1 is not a whole number from 1"),
        ("headers string", '{"a": 1}', "headers: the value of 'a', 1, is not text"),
        ("group string", "", "group"),
        ("time_limit double", 0.0, "time_limit: 0.0 is not a positive number of seconds"),
    ],
)
def test_a_row_that_is_no_job_says_why(ddl: str, value: Any, says: str) -> None:
    assert says in reason(ddl, value)


def test_not_a_number_is_no_json() -> None:
    assert "nan is negative, or longer than" in reason("delay double", float("nan"))
    kind = st.StructType([st.StructField("args", st.ArrayType(st.DoubleType()))])
    batch = pa.RecordBatch.from_pylist([{"args": [float("nan")]}], schema=arrow_of(kind))
    (bad,) = Table.of(kind, queue="q", task="t", id_column=None, max_body=MAX).jobs(batch, 7)
    assert isinstance(bad, Bad)
    assert bad.row == 7
    assert bad.reason == "argument '#1' of task 't': nan is not JSON; pass None or text"


def test_a_delay_and_a_time_exclude_each_other() -> None:
    row = (1.0, datetime(2030, 1, 31, tzinfo=UTC))
    assert "not both" in reason("delay double, at timestamp", *row)


def test_bad_rows_are_shown_and_the_others_go_on() -> None:
    first, bad, last = read("args string", ("[1]",), ("[",), ("[2]",))
    assert isinstance(first, Job)
    assert isinstance(last, Job)
    assert (first.row, bad.row, last.row) == (0, 1, 2)
    assert isinstance(bad, Bad)
    assert orjson.loads(bad.record) == {"args": "["}


@pytest.mark.parametrize(
    ("ddl", "more", "says"),
    [
        ("tsk string", {}, "column 'tsk': a job has no such column; did you mean task?"),
        ("priority int", {}, "column 'priority': a job has no such column; did you mean level?"),
        ("args decimal", {}, "column 'args': is decimal(10,2); it may be string, array, struct"),
        ("args decimals", {}, "args[] is decimal(10,2), which JSON does not have"),
        ("kwargs ints", {}, "kwargs has keys of int"),
        ("args binary", {}, "column 'args': is binary"),
        ("id long", {}, "column 'id': is bigint; it may be string"),
        ("args array", {"queue": None}, "queue: there is no column 'queue'"),
        ("args array", {"task": None}, "task: there is no column 'task'"),
        ("args array", {"id_column": "k"}, "idColumn: there is no column 'k'"),
        ("k string, id string", {"id_column": "k"}, "column 'id': a job has no such column"),
    ],
)
def test_a_wrong_column_is_named(ddl: str, more: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        table(ddl, **more)
    assert says in str(wrong.value)


def test_a_row_may_say_itself_that_it_is_none() -> None:
    good, bad = read("problem string, queue string", (None, "q"), ("no age", None))
    assert isinstance(good, Job)
    assert bad == Bad(1, "no age", '{"problem":"no age","queue":null}')
