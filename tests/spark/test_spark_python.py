"""What stands for Python where the Spark of tests starts it does all that Python would."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from tests.support.spark_python import SparkPython


@pytest.fixture
def python(tmp_path: Path) -> Iterator[SparkPython]:
    made = SparkPython(tmp_path)
    made.start()
    yield made
    made.end()


def reading(python: SparkPython) -> subprocess.Popen[bytes]:
    """A module that reads its standard input to the end, and writes it tidied."""
    command = [python.program, "-m", "json.tool", "--compact"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def test_it_runs_a_module(python: SparkPython) -> None:
    """With its arguments and streams, and ends as it does; also where nobody forks any more."""
    for _ in range(2):
        good = reading(python)
        assert good.communicate(b'{"a": 1}') == (b'{"a":1}\n', b"")
        bad = reading(python)
        said, complaint = bad.communicate(b"{")
        assert (said, good.returncode, bad.returncode) == (b"", 0, 1)
        assert complaint.count(b"\n") == 1
        python.end()


def test_it_ends_with_who_started_it(python: SparkPython) -> None:
    with reading(python) as started:
        assert started.stdin is not None and started.stdout is not None
        started.kill()
        assert started.stdout.read() == b"", "the fork had it open"


def test_spark_s_python_begins_with_all_loaded(spark: SparkSession) -> None:
    def begun() -> str:
        import sys

        return f"{sys.orig_argv[1:3]}"

    (row,) = spark.range(1).select(udf(begun)().alias("as")).collect()
    assert row["as"] == "['-m', 'tests.support.spark_python']"
