"""How the whole suite is dealt to processes: `make test` runs it with pytest-xdist.

A file's tests stay together, in order: what a module has made once is made once. All files that
need Spark are one group: a process has one session, and the machine is to run one at a time. The
groups that take longest begin first, so that none of them is left alone at the end.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.spark import needs_spark

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).resolve().parents[2]
SPARK = "spark"
ASKS_FOR_SPARK = re.compile(r"^    (cluster_spark|sparks?): |[(, ](cluster_spark|sparks?): ", re.M)

FIRST = (
    SPARK,
    "tests/workers/loop",
    "tests/soak",
    "tests/benchmarks",
    "tests/workers",
    "tests/property",
    "tests/damage",
    "tests/crash",
    "tests/typing",
    "tests/shape",
    "tests/conformance",
)
"""Groups and folders with minutes of work, in the order in which they begin."""


def processes() -> int:
    """For `-n logical`: two more than the machine has cores. Tests wait for processes that start,
    servers that come back and Java, nearly half of the time."""
    return (os.cpu_count() or 1) + 2


@cache
def group(file: str) -> str:
    """What runs in one process, one after the other: the file's name, or SPARK."""
    if file.startswith("tests/pipeline/"):
        return SPARK
    path = ROOT / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return SPARK if ASKS_FOR_SPARK.search(text) else file


def check(items: list[pytest.Item]) -> None:
    """See to it that what needs Spark is in its group."""
    for item in items:
        if needs_spark(item) and group(_file(item.nodeid)) != SPARK:
            raise pytest.UsageError(f"{item.nodeid}: its file does not look like one with Spark")


def sort(items: list[pytest.Item]) -> None:
    """Order the groups; the order in a group stays."""
    items.sort(key=lambda item: _rank(group(_file(item.nodeid))))


def distributed(config: pytest.Config) -> bool:
    """Whether this process runs a part of the suite only."""
    return hasattr(config, "workerinput")


def scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Deals whole groups, in the order of `sort`."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(_file(nodeid))

    config.option.loadscopereorder = False
    return Groups(config, log)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _rank(name: str) -> int:
    begins = (
        rank for rank, first in enumerate(FIRST) if name == first or name.startswith(f"{first}/")
    )
    return next(begins, len(FIRST))
