"""Each fault that the searches plant into a Lua source has its place there: who changes a source
hears of it here, and not from a search that runs for minutes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from rqueue.protocol.lua_folder import find_lua

ROOT = Path(__file__).resolve().parents[2]
LUA = Path(str(find_lua()))


def _has_plants(path: Path) -> bool:
    text = path.read_text("utf-8")
    return ".lua" in text and "planted" in text.lower() and path != Path(__file__)


FILES = sorted(path for path in (ROOT / "tests").rglob("*.py") if _has_plants(path))


def plants(source: str) -> Iterator[tuple[str, str]]:
    """The pairs of a Lua source's path and a piece of it, one behind the other, among the arguments
    of a call or in a tuple."""
    tree = ast.parse(source)
    named = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def said(node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            return named.get(node.id)
        return node.value if isinstance(node, ast.Constant) else None

    for node in ast.walk(tree):
        if isinstance(node, ast.Call | ast.Tuple):
            parts = node.args if isinstance(node, ast.Call) else node.elts
            for file, piece in pairwise(map(said, parts)):
                if not (isinstance(file, str) and isinstance(piece, str)):
                    continue
                if file.endswith(".lua") and not piece.endswith(".lua"):  # no list of files
                    yield file, piece


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_fault_has_its_place(path: Path) -> None:
    for file, piece in plants(path.read_text("utf-8")):
        assert (LUA / file).read_text("utf-8").count(piece) == 1, f"lua/{file}: {piece}"


def test_they_are_found_in_all_the_ways_they_are_written() -> None:
    found = {path.name: list(plants(path.read_text("utf-8"))) for path in FILES}
    for name in ("test_planted_hold.py", "test_flows.py", "test_limits.py", "test_unchanged.py"):
        assert len(found[name]) > 5, name
    written = 'PLACE = "a.lua"\nFault("x", PLACE, "one" "two", "")'
    assert list(plants(written)) == [("a.lua", "onetwo")]
