"""CONTRIBUTING.md names what there is: files, folders, commands of make, tests, profiles."""

import re
from pathlib import Path

import click
import pytest

from benchmarks.__main__ import profile

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACES = ("rqueue", "lua", "workers", "tests", "docs", "benchmarks", "examples", "tools")
PATHS = sorted(
    set(re.findall(rf"(?<![\w/])(?:{'|'.join(PLACES)})/[\w/.]*(?<![.])", PAGE))
    | set(re.findall(r"\]\((?!http)([^)#]+)", PAGE))
)
TESTS = sorted(set(re.findall(r"\btest_\w+\.py", PAGE)))
TARGETS = sorted(set(re.findall(r"(?:`|\$ )make ([a-z-]+)", PAGE)))


@pytest.mark.parametrize("path", PATHS)
def test_a_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", TESTS)
def test_a_file_of_tests_exists(name: str) -> None:
    assert list((ROOT / "tests").rglob(name))


@pytest.mark.parametrize("target", TARGETS)
def test_make_has_the_target(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


def test_a_test_that_is_named_exists() -> None:
    for name in re.findall(r"-k (test_\w+)", PAGE):
        files = (ROOT / "tests").rglob("test_*.py")
        assert any(f"def {name}(" in path.read_text(encoding="utf-8") for path in files), name


def test_a_profile_that_is_named_exists() -> None:
    assert isinstance(profile, click.Group)
    named = set(re.findall(r"benchmarks profile ([a-z-]+)", PAGE))
    assert named and named <= set(profile.commands)


def test_the_checks_find() -> None:
    assert {"lua/README.md", "rqueue/cli/root.py", "docs/glossary.md", "tests/soak"} <= set(PATHS)
    assert {"setup", "test", "fuzz", "soak", "bench"} <= set(TARGETS)
