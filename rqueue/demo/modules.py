"""The demo's work: parse a Python module and measure it."""

from __future__ import annotations

import ast
import os
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from rqueue.tasks.decorator import task

QUEUE = "demo"

_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.Try,
    ast.ExceptHandler,
    ast.BoolOp,
    ast.IfExp,
    ast.comprehension,
    ast.match_case,
)


class Measure(TypedDict):
    """One module in numbers. `longest`: lines of its longest function. `parsed`: 0 where the file
    is no valid Python (the library's tests ship some on purpose). `pid`: the process that measured
    it."""

    path: str
    lines: int
    functions: int
    classes: int
    branches: int
    longest: int
    longest_name: str
    parsed: int
    pid: int


COUNTED = ("lines", "functions", "classes", "branches", "parsed")
"""The numbers that add up over modules."""


def measure_file(path: str) -> Measure:
    """Parse one file and count what is in it."""
    source = Path(path).read_bytes()
    found: Measure = {
        "path": path,
        "lines": source.count(b"\n"),
        "functions": 0,
        "classes": 0,
        "branches": 0,
        "longest": 0,
        "longest_name": "",
        "parsed": 1,
        "pid": os.getpid(),
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old escapes in old modules are not our subject
            tree = ast.parse(source, path)
    except (SyntaxError, ValueError):
        found["parsed"] = 0
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found["functions"] += 1
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > found["longest"]:
                found["longest"], found["longest_name"] = length, node.name
        elif isinstance(node, ast.ClassDef):
            found["classes"] += 1
        elif isinstance(node, _BRANCHES):
            found["branches"] += 1
    return found


@task(name="demo.measure", queue=QUEUE)
def measure(path: str) -> Measure:
    """A worker runs this for each module."""
    return measure_file(path)


LIBRARY = Path(sysconfig.get_path("stdlib"))
"""Where the running Python keeps its standard library."""


def library_files() -> Iterator[str]:
    """Every .py file of the standard library, in order."""
    for path in sorted(LIBRARY.rglob("*.py")):
        if not {"site-packages", "dist-packages"} & set(path.parts):
            yield str(path)
