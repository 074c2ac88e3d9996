"""What tests cost in CPU seconds, by folder and by file: a plugin of pytest, off by default.

    make test ARGS="-ptests.support.cpu_seconds"

A test's seconds are those of its process and of all below it: servers, pools, Java. What a program
spends after its test, because it ends later or is shared, counts for the test that runs then; what
a program spends that outlives its parent is not seen. Beside them stand the seconds that tests
took: where these are many more, a test waits, which costs nothing but the end of a run.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
FILES = 40
"""How many files the table names."""


def seconds() -> float:
    """CPU seconds of this process, and of all that it started and that are below it still."""
    me = os.times()
    spent: dict[int, float] = {}
    below: dict[int, list[int]] = {}
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        parent, *rest = stat.rpartition(") ")[2].split()[1:]
        spent[pid] = sum(map(int, rest[9:13])) / TICKS  # also of children that have ended
        below.setdefault(int(parent), []).append(pid)
    total, todo = me.user + me.system + me.children_user + me.children_system, [os.getpid()]
    while todo:
        for child in below.get(todo.pop(), ()):
            total += spent[child]
            todo.append(child)
    return total


class Meter:
    """Notes, in a process that runs tests, what each of them has taken."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since()

    def _since(self) -> float:
        """What was spent since the last call; looking at all processes counts for nobody."""
        begun, now = time.process_time(), seconds()
        taken = now - self._before
        self._before = now + time.process_time() - begun
        return taken

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collecting = self._since()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("cpu_seconds", self._since()))
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["cpu_seconds"] = (self.collecting, self._since())


class Table:
    """Adds up what the meters noted, and prints it at the end."""

    def __init__(self) -> None:
        self._files: Counter[str] = Counter()
        self._tests: Counter[str] = Counter()
        self._walls: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self._walls[file] += report.duration  # type: ignore[assignment]
        for name, value in report.user_properties:
            if name == "cpu_seconds" and report.when == "teardown":
                self._files[file] += value  # type: ignore[assignment]
                self._tests[file] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        collecting, rest = getattr(node, "workeroutput", {}).get("cpu_seconds", (0, 0))
        self._files["(collection)"] += collecting
        self._files["(ends of sessions)"] += rest

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("CPU seconds, seconds, tests")
        for depth in (2, 9):  # folders, then files
            found, walls, tests = (
                _by_folder(counted, depth) for counted in (self._files, self._walls, self._tests)
            )
            for name, spent in [*found.most_common(FILES), ("in all", sum(found.values()))]:
                wall, number = (
                    sum(one.values()) if name == "in all" else one[name] for one in (walls, tests)
                )
                terminalreporter.write_line(f"{spent:9.1f} {wall:9.1f} {number:6} {name}")
            terminalreporter.write_line("")


def _by_folder(counted: Counter[str], depth: int) -> Counter[str]:
    """The sums of the first parts of paths."""
    found: Counter[str] = Counter()
    for file, number in counted.items():
        found["/".join(file.split("/")[:depth])] += number
    return found


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin("dsession"):
        config.pluginmanager.register(Meter())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table())
