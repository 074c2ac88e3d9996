"""docs/worker_internals.md names the modules that there are, and all of a pool's and a worker's."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "worker_internals.md").read_text(encoding="utf-8")
WORKERS = ROOT / "workers" / "rqueue_workers"
ROOMS = ("pool", "worker", "tasks", "client", "protocol", "transport", "model", "inspector")
FOUND = set(re.findall(rf"\b(?:{'|'.join(ROOMS)})(?:[./][a-z_]+)+", PAGE))
NAMED = sorted(name for name in FOUND if not name.endswith((".md", ".lua")))


def _exists(name: str) -> bool:
    path = name.replace(".", "/")
    bases = (WORKERS, ROOT / "rqueue")
    return any((b / f"{path}.py").is_file() or (b / path / "__init__.py").is_file() for b in bases)


@pytest.mark.parametrize("name", NAMED)
def test_a_module_that_is_named_exists(name: str) -> None:
    assert _exists(name)


@pytest.mark.parametrize("room", ["pool", "worker"])
def test_no_module_is_missing(room: str) -> None:
    there = {
        str(path.relative_to(WORKERS).with_suffix(""))
        for path in (WORKERS / room).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert sorted(name for name in there if f"`{name}`" not in PAGE) == []


def test_the_check_finds() -> None:
    assert _exists("worker/worker") and _exists("transport.resp")
    assert not _exists("worker/none")
    assert len(NAMED) > 40
