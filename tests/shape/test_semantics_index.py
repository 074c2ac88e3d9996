"""docs/semantics.md says what each numbered behaviour means: both ways, and all it names exists."""

import ast
import functools
import re
from pathlib import Path

import click

import rqueue
from rqueue.cli.root import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "semantics.md"
CODE = re.compile(r"\b(?:QPID-\d+|[ACHQX]-\d{2})\b")
PLACES = ("rqueue", "workers", "lua", "tests", "docs", "benchmarks", "examples")
KINDS = {".py", ".lua", ".md", ".toml"}


def _rows() -> dict[str, tuple[str, str, str]]:
    """code -> meaning, where, test."""
    rows: dict[str, tuple[str, str, str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\| `([^`]+)` \|", line):
            code = found[1]
            assert code not in rows, f"{code} stands twice"
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            assert len(cells) == 4, line
            rows[code] = (cells[1], cells[2], cells[3])
    return rows


ROWS = _rows()


def codes_of(text: str) -> set[str]:
    return set(CODE.findall(text))


@functools.cache
def _used() -> dict[str, str]:
    """code -> a file that names it."""
    used: dict[str, str] = {}
    paths = [path for place in PLACES for path in sorted((ROOT / place).rglob("*"))]
    for path in [*paths, *ROOT.glob("*.md")]:
        if path.suffix in KINDS and path not in (PAGE, Path(__file__)):
            for code in codes_of(path.read_text(encoding="utf-8")):
                used.setdefault(code, str(path.relative_to(ROOT)))
    return used


def _exists(token: str) -> bool:
    """Whether what a cell names is there: a file, a command with its option, a public name."""
    if "/" in token:
        return (ROOT / token).is_file()
    if token.startswith("rqueue "):
        command: click.Command | None = cli
        context = click.Context(cli)
        for word in token.split()[1:]:
            if word.startswith("--"):
                options = [option for p in (command.params if command else []) for option in p.opts]
                if word not in options:
                    return False
            elif not isinstance(command, click.Group):
                return False
            else:
                command = command.get_command(context, word)
        return command is not None
    owner: object = rqueue
    for name in token.split("."):
        fields = getattr(owner, "__annotations__", {})
        if hasattr(owner, name):
            owner = getattr(owner, name)
        elif name in fields:
            owner = fields[name]
        else:
            return False
    return True


@functools.cache
def _tests_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_a_code_that_is_used_stands_on_the_page() -> None:
    unsaid = {code: file for code, file in _used().items() if code not in ROWS}
    assert unsaid == {}, "docs/semantics.md does not say what these are"


def test_a_code_on_the_page_is_used() -> None:
    assert sorted(ROWS.keys() - _used().keys()) == [], "nothing names these any more"


def test_a_row_says_what_holds_in_sentences() -> None:
    for code, (meaning, _, _) in ROWS.items():
        assert meaning[0] == "`" or meaning[0].isupper(), code
        assert meaning.endswith("."), code
        assert codes_of(meaning) <= set(ROWS), code


def test_what_a_row_names_exists() -> None:
    for code, (_, where, _) in ROWS.items():
        tokens = re.findall(r"`([^`]+)`", where)
        assert tokens, code
        assert [token for token in tokens if not _exists(token)] == [], code


def test_the_test_of_a_row_exists() -> None:
    for code, (_, _, test) in ROWS.items():
        tests = re.findall(r"`([^`]+)`", test)
        assert tests, code
        for one in tests:
            path, _, name = one.partition("::")
            assert name in _tests_of(ROOT / path), (code, one)


def test_the_checks_find() -> None:
    assert codes_of("as JMS (Q-11), H-07: a hint; not SHA-256, UTF-8, Q-7, AQ-11") == {
        "Q-11",
        "H-07",
    }
    for there in ("lua/pull.lua", "Queue.cancel", "rqueue purge --held", "Options.priority"):
        assert _exists(there), there
    for gone in ("lua/none.lua", "Queue.none", "rqueue purge --none", "rqueue none", "None_"):
        assert not _exists(gone), gone
