"""The report of the scenario: its document, its page, its tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rqueue.errors import ConfigError
from rqueue.pipeline.report.report import Objectives, Report, bucket_width, report
from tests.pipeline.history_rows import SCENARIO, T0, frame, leaves
from tests.support.spark import Sparks

pytestmark = pytest.mark.timeout(600)

BY_DEFAULT = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.constraintPropagation.enabled": "true",
    "spark.sql.shuffle.partitions": "200",
}
"""What Spark does where nobody says otherwise; `tests/support/spark.py` does."""

HOSTILE = '</script><img src=x onerror="alert(1)">'


def of_scenario(spark: SparkSession) -> Report:
    rows = [
        *SCENARIO,
        {**SCENARIO[0], "task": HOSTILE, "worker": HOSTILE, "group": None, "at": 311},
    ]
    return report(
        frame(spark, rows),
        T0,
        T0 + 10_000,
        objectives=Objectives(wait_s=0.25, run_s=0.45),
        sources=["a table"],
    )


@pytest.fixture(scope="module")
def made(sparks: Sparks) -> Iterator[Report]:
    made = of_scenario(sparks.get())
    yield made
    made.close()


@pytest.fixture(scope="module")
def text(made: Report) -> str:
    """Its page."""
    return made.html()


@pytest.fixture(scope="module")
def empty(sparks: Sparks) -> dict[str, Any]:
    return report(frame(sparks.get(), []), T0, T0 + 10_000, by="label", queues=["q"]).document


class Reader(HTMLParser):
    """What a browser would load, and the text that people see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._hidden += tag in ("style", "script")
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.loads.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += " " + " ".join(data.split())


def test_figures(made: Report) -> None:
    """The scenario's ten rows and one more: done once, having waited 100 and run 200."""
    figures = made.document["figures"]
    assert (figures["rows"], figures["done"], figures["failed"], figures["removed"]) == (
        11,
        3,
        3,
        1,
    )
    assert (figures["attempts"], figures["retries"], figures["run_ms"]) == (8, 3, 3400)
    # the first row is of 310, the last of 7000
    assert figures["per_second"] == pytest.approx(3 * 1000 / 6691)
    assert figures["failed_share"] == pytest.approx(3 / 6)
    assert figures["wasted_share"] == pytest.approx(2900 / 3400)
    # waits 100 300 100 500 3000 100: half of them over 250; runs: 500 and 2000 of six over 450
    assert figures["wait_kept"] == pytest.approx(3 / 6)
    assert figures["run_kept"] == pytest.approx(4 / 6)
    # w2 2500 of 3600, w1 700 of 6950, w3 nothing, the other 200 of 250
    assert figures["utilisation"] == pytest.approx(3400 / (3600 + 6950 + 250))


def test_document(made: Report) -> None:
    document = json.loads(made.json())
    assert document == made.document
    assert (document["from"], document["to"]) == (
        "2026-01-01T00:00:00.000+00:00", "2026-01-01T00:00:10.000+00:00",
    )  # fmt: skip
    assert (document["first"][17:23], document["last"][17:23]) == ("00.310", "07.000")
    assert document["queues"] == ["a", "b"]
    assert document["bucket_ms"] == 1000
    assert [row["from"][17:19] for row in document["tables"]["time"]] == [
        "00", "01", "03", "04", "05", "06", "07",
    ]  # fmt: skip
    assert sum(row["done"] for row in document["tables"]["time"]) == 3
    assert document["tables"]["errors"][0]["first"] == "2026-01-01T00:00:04.000+00:00"


def test_tables_are_made_of_the_rows_that_are_kept(made: Report) -> None:
    for name, table in made.tables.items():
        assert leaves(table) == {"InMemoryRelation"}, name


def test_page_stands_alone(text: str) -> None:
    read = Reader(text)
    assert read.loads == []
    assert "script" not in read.tags
    assert re.findall(r"@import|https?://(?!www\.w3\.org/)", text) == []
    assert read.tags.count("svg") == len(
        ["throughput", "wait", "run", "spread", "by", "workers", "groups"]
    )
    assert len(set(read.ids)) == len(read.ids)
    for reference in re.findall(r'(?:url\(#|href="#)([^")]+)', text):
        assert reference in read.ids


def test_page_says_what_the_document_holds(text: str) -> None:
    shown = Reader(text).text
    for said in (
        "a, b", "2026-01-01 00:00:00 to 2026-01-01 00:00:10 UTC", "11 rows",
        "SIGSEGV", "the worker process was killed", "boom", "KeyError", "pdf",
        "Waited 250 ms at most", "Ran 450 ms at most", "50 %",
        "per second", "time (UTC)", "wait time", "run time",
    ):  # fmt: skip
        assert said in shown, said
    assert "No objective was given" not in shown


def test_names_of_users_are_text(text: str) -> None:
    assert "<img" not in text
    assert "onerror" in Reader(text).text


def test_empty_sections_say_so(empty: dict[str, Any]) -> None:
    from rqueue.pipeline.report.page import page  # and with it matplotlib, when it runs

    text = Reader(page(empty)).text
    for said in (
        "No history", "There is no history in this range", "Nothing ended", "No attempt began",
        "No rows.", "No attempt failed.", "No job failed for good.", "No worker had a job.",
        "No job of this range has a group.", "No objective was given",
        "No time was spent in attempts that failed.", "No attempt ran.",
    ):  # fmt: skip
        assert said in text, said
    assert empty["figures"]["per_second"] is None
    assert empty["asked_queues"] == ["q"]


def test_tables_as_parquet(spark: SparkSession, made: Report, tmp_path: Path) -> None:
    for name, table in made.tables.items():  # all else Parquet can hold
        assert "void" not in table.schema.simpleString(), name
    path = tmp_path / "tables"
    some = {name: made.tables[name] for name in ("totals", "errors", "dead")}
    replace(made, tables=some).write_parquet(str(path))
    again = {"errors": made.tables["errors"]}
    replace(made, tables=again).write_parquet(f"{path}/")  # replaces that one
    assert {folder.name for folder in path.iterdir()} == set(some)
    assert spark.read.parquet(str(path / "errors")).count() == 4
    assert spark.read.parquet(str(path / "dead")).first()["jobs"][0]["id"] == "p3"
    assert spark.read.parquet(str(path / "totals")).first()["attempts"] == 8


@pytest.mark.long
def test_figures_are_the_same_as_spark_plans_by_default(spark: SparkSession, made: Report) -> None:
    """The tests' session plans and runs everything in the way that is cheapest for a few rows."""
    default = spark.newSession()
    for name, value in BY_DEFAULT.items():
        default.conf.set(name, value)
    again = of_scenario(default)
    try:
        for name, table in again.tables.items():
            assert leaves(table) == {"InMemoryRelation"}, name
        for part in ("figures", "tables", "queues", "bucket_ms"):
            assert again.document[part] == made.document[part], part
    finally:
        again.close()


@pytest.mark.parametrize(
    ("length_ms", "width_ms"),
    [
        (1, 1000),
        (100_000, 1000),
        (100_001, 2000),
        (86_400_000, 30 * 60_000),
        (10**12, 28 * 86_400_000),
    ],
)
def test_bucket_width(length_ms: int, width_ms: int) -> None:
    """The narrowest that cuts the time into a hundred at most."""
    assert bucket_width(length_ms) == width_ms


def test_wrong_wishes_are_named(spark: SparkSession) -> None:
    rows = frame(spark, [])
    with pytest.raises(ConfigError, match="by: 'color' is not one of task"):
        report(rows, T0, T0 + 1, by="color")
    with pytest.raises(ConfigError, match="to: the range is empty"):
        report(rows, T0, T0)
    with pytest.raises(ConfigError, match="slo-wait: -1 s is below 0"):
        Objectives(wait_s=-1)
