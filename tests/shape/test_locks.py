"""No lock can be jammed by a call inside of a call, or by a fork: all are made by `new_lock`."""

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
