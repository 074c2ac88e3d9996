"""Every test of `tests/conformance/scenarios` is named after the id of a scenario that
docs/semantics.md lists, and an id has one test, or parts, all of `tests/conformance` included.

`python -m tests.shape.test_scenarios` lists the ids that have no test yet.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALL = ROOT / "tests" / "conformance"
FOLDER = ALL / "scenarios"
PAGE = ROOT / "docs" / "semantics.md"
NAME = re.compile(r"test_([A-Z]{3})_(\d{2})_[a-z]\w+")
NOT_APPLICABLE_MAX = 25


def _listed(page: str) -> set[str]:
    """The ids of the page's table of groups, as in `QCM-05`."""
    rows = re.findall(r"^\| ([A-Z]{3}) \| [^|]+ \| ((?:\d{2} ?)+)\|$", page, re.MULTILINE)
    return {f"{group}-{number}" for group, numbers in rows for number in numbers.split()}


def _left_out(page: str) -> dict[str, str]:
    """id -> why no test shows it."""
    found: dict[str, str] = {}
    for ids, reason in re.findall(
        r"^\| ((?:[A-Z]{3}-\d{2}(?:, )?)+) \| (.+) \|$", page, re.MULTILINE
    ):
        for id_ in ids.split(", "):
            assert id_ not in found, f"{id_} stands twice"
            found[id_] = reason
    return found


@cache
def _tests_in(path: Path) -> list[tuple[str, str]]:
    """Those of a file. It is read by the tests: processes that only collect this module parse
    nothing."""
    return _tests(path.read_text(encoding="utf-8"))


def _tests(source: str) -> list[tuple[str, str]]:
    """(name, docstring) of the tests at the top of a file."""
    return [
        (node.name, ast.get_docstring(node) or "")
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    ]


def misnamed(file: str, tests: list[tuple[str, str]]) -> list[str]:
    """Tests whose names begin with no id of the group that the file is named after: `test_qov.py`,
    or `test_qov_<what>.py` where there are many."""
    group = file.removeprefix("test_").removesuffix(".py").partition("_")[0].upper()
    return [
        name for name, _ in tests if not ((match := NAME.fullmatch(name)) and match[1] == group)
    ]


def doubled(tests: list[tuple[str, str]]) -> list[str]:
    """Ids with several tests that are not its parts `a)`, `b)`, ... by their docstrings."""
    parts: dict[str, list[str]] = {}
    for name, text in tests:
        if match := NAME.fullmatch(name):
            parts.setdefault(f"{match[1]}-{match[2]}", []).append(text[:2].strip())
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [
        id_
        for id_, found in parts.items()
        if len(found) > 1 and sorted(found) != [f"{letter})" for letter in letters[: len(found)]]
    ]


LISTED = _listed(PAGE.read_text(encoding="utf-8"))
LEFT_OUT = _left_out(PAGE.read_text(encoding="utf-8"))
FILES = sorted(path.name for path in FOLDER.glob("test_*.py"))


def every() -> list[tuple[str, str]]:
    """The tests of all files."""
    return [one for path in sorted(ALL.rglob("test_*.py")) for one in _tests_in(path)]


def standing() -> set[str]:
    """Ids that have a test."""
    names = (NAME.fullmatch(name) for name, _ in every())
    return {f"{match[1]}-{match[2]}" for match in names if match}


@pytest.mark.parametrize("file", FILES)
def test_each_test_is_named_after_a_scenario_of_its_file_s_group(file: str) -> None:
    assert misnamed(file, _tests_in(FOLDER / file)) == []
    assert file == file.lower(), "the file is named after the group, in small letters"


def test_the_page_lists_each_scenario_that_has_a_test() -> None:
    assert standing() - LISTED == set()


def test_an_id_has_one_test_or_parts() -> None:
    assert doubled(every()) == []


def test_what_does_not_apply_has_a_reason_and_no_test() -> None:
    assert LEFT_OUT.keys() - LISTED == set()
    assert LEFT_OUT.keys() & standing() == set()
    assert len(LEFT_OUT) <= NOT_APPLICABLE_MAX
    assert [id_ for id_, reason in LEFT_OUT.items() if not reason.endswith(".")] == []


def test_the_checks_find() -> None:
    assert _listed("| QCM | Who is notified | 01 05 |\n") == {"QCM-01", "QCM-05"}
    assert _left_out("| QCM-01, QCM-05 | There is none. |\n").keys() == {"QCM-01", "QCM-05"}
    tests = _tests(
        "def test_QCM_01_a_b(): ...\ndef test_a(): ...\nasync def test_QES_01_c_d(): ..."
    )
    assert misnamed("test_qcm.py", tests) == ["test_a", "test_QES_01_c_d"]
    assert doubled([("test_QCM_01_a_b", "a) one"), ("test_QCM_01_c_d", "b) two")]) == []
    assert doubled([("test_QCM_01_a_b", "One."), ("test_QCM_01_c_d", "Two.")]) == ["QCM-01"]


if __name__ == "__main__":
    print(*sorted(LISTED - standing() - LEFT_OUT.keys()))
