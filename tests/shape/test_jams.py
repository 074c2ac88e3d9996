"""What a call inside of a call, a fork, or many descriptors would jam is not used."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = "rqueue/model/locks.py"
JAMMED = {"Lock", "RLock", "Semaphore", "BoundedSemaphore", "Barrier"}


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """What is called: (file, the name with what stands before it, the call)."""
    for folder in ("rqueue", "workers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    yield str(path.relative_to(ROOT)), ast.unparse(node.func), node


def test_locks_are_made_in_one_place() -> None:
    found = []
    for file, name, call in calls():
        kind = name.rpartition(".")[2]
        plain = kind in JAMMED or (kind == "Condition" and not call.args)
        if plain and not name.startswith("asyncio.") and file != HOME:
            found.append(f"{file}:{call.lineno} {name}")
    assert found == []


def test_nothing_waits_by_select() -> None:
    """It refuses descriptors from 1,024 up, which an application may well have."""
    found = [f"{file}:{call.lineno}" for file, name, call in calls() if name == "select.select"]
    assert found == []
