"""How the whole suite is dealt to processes: `make test` runs it with pytest-xdist.

A file's tests stay together, in order: what a module has made once is made once. The files that
need Spark are one group: a Java takes three times as long for what it does first, until its classes
are loaded and compiled, and a second one would do that anew. The groups that take longest begin
first, so that none of them is left alone at the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.spark import needs_spark

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).resolve().parents[2]
SPARK = "spark"

TOGETHER = {"tests/lua/test_contract.py": "tests/lua/test_policies.py"}
"""Files that run in the process of another one: both look at the scripts of all kinds, which are
composed once there."""

ASKS_FOR_SPARK = re.compile(r"^    (cluster_spark|sparks?): |[(, ](cluster_spark|sparks?): ", re.M)
RUNS_PIPELINE = re.compile(r"\((run|read): ")
"""In tests/pipeline: commands run on the session."""

FIRST = (
    SPARK,
    "tests/workers/loop",
    "tests/property/test_machine.py",
    "tests/soak",
    "tests/benchmarks",
    "tests/lua/test_contract.py",
    "tests/lua/test_policies.py",
    "tests/workers",
    "tests/property",
    "tests/damage",
    "tests/crash",
    "tests/transport",
    "tests/typing",
    "tests/shape",
    "tests/conformance",
    "tests/cli/test_hung_server.py",
    "tests/contrib",
    "tests/demo",
    "tests/pipeline",
    "tests/cli",
    "tests/inspector",
    "tests/client",
)
"""Groups, folders and files with minutes of work, in the order in which they begin; behind them
come those whose tests are short, so that all processes end together."""


def processes(config: pytest.Config) -> int:
    """For `-n logical`: three more than the machine has cores. Tests wait for processes that start,
    servers that come back and Java, half of the time: with two more, two cores had nothing to do
    for a seventh of a run. For `-n auto`: as many as it has cores, where tests wait for nothing;
    each process takes seconds to collect them."""
    waiting = 3 if config.option.numprocesses == "logical" else 0
    return (os.cpu_count() or 1) + waiting


@cache
def group(file: str) -> str:
    """What runs in one process, one after the other: the file's name, or Spark's."""
    file = TOGETHER.get(file, file)
    path = ROOT / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    commands = file.startswith("tests/pipeline/") and RUNS_PIPELINE.search(text)
    return SPARK if commands or ASKS_FOR_SPARK.search(text) else file


def check(items: list[pytest.Item]) -> None:
    """See to it that what needs Spark is in its group."""
    for item in items:
        if needs_spark(item) and group(_file(item.nodeid)) != SPARK:
            raise pytest.UsageError(f"{item.nodeid}: its file does not look like one with Spark")


def sort(items: list[pytest.Item]) -> None:
    """Order the groups; the order in a group stays."""
    items.sort(key=lambda item: _rank(group(_file(item.nodeid))))


def compile_share(config: pytest.Config) -> None:
    """Import this process's share of the test modules before it collects all of them: in a fresh
    clone each process would rewrite the assertions of all by itself, two thirds of what it takes to
    collect; so it finds those of the others done."""
    number, of = int(config.workerinput["workerid"][2:]), config.workerinput["workercount"]  # type: ignore[attr-defined]
    paths = [ROOT / argument for argument in config.args if "::" not in argument]
    modules = sorted(
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for path in paths
        if path.is_dir() and path.is_relative_to(ROOT)
        for file in path.rglob("test_*.py")
    )
    for module in modules[number::of]:
        with suppress(Exception):  # collecting it says so
            import_module(module)


def distributed(config: pytest.Config) -> bool:
    """Whether this process runs a part of the suite only."""
    return hasattr(config, "workerinput")


def say_less(config: pytest.Config) -> None:
    """Let this process tell of each test how it ended, and nothing else unless something is wrong:
    who deals them hears six words of each, four of which say that nothing happened, and to write
    and read them takes as long as to collect the tests."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor" and not config.option.durations:
            plugin.sendevent = partial(_send, plugin.sendevent)


def _send(send: Callable[..., None], event: str, **said: Any) -> None:
    report = said.get("data", {}) if event == "testreport" else {}
    around = report.get("when", "call") != "call" and report["outcome"] == "passed"
    has_more = report.get("sections") or report.get("user_properties")
    if event not in ("logstart", "logfinish") and not (around and not has_more):
        send(event, **said)


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
