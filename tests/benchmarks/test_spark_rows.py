"""The rows of the benchmarks that need Spark; a file of their own, since all that does runs in one
process."""

import pytest

from benchmarks.__main__ import SPARK
from benchmarks.lab.bench import Bench
from tests.benchmarks.measured_rows import check
from tests.support.spark import Sparks


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in SPARK if name != "history-memory"])
def test_a_row_of_spark_runs(bench: Bench, sparks: Sparks, name: str) -> None:
    sparks.get()  # it ends with the tests
    check(bench, name)
