"""Who may import whom: lower layers never import higher ones, and nothing imports in circles."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# From low to high: a folder's rooms stand beside the folder's modules. What stands on one line is
# side by side and imports nothing of each other.
LAYERS: list[tuple[str, ...]] = [
    ("rqueue.text",),
    ("rqueue.errors",),
    ("rqueue.logs",),
    ("rqueue.model",),
    ("rqueue.settings",),
    ("rqueue.tasks",),
    ("rqueue.protocol",),
    ("rqueue.transport",),
    ("rqueue.client",),
    ("rqueue",),  # the public names: rqueue/__init__.py alone
    ("rqueue.inspector", "rqueue.embedded"),
    ("rqueue.spark",),
    ("rqueue.pipeline", "rqueue_workers.spec", "rqueue_workers.exit_codes"),
    ("rqueue_workers.status_page", "rqueue_workers.pool_file", "rqueue_workers.outage_log"),
    ("rqueue_workers.worker",),
    ("rqueue.testing",),  # runs jobs by the parts of a worker
    ("rqueue_workers.pool",),
    ("rqueue_workers.run", "rqueue_workers"),
    ("rqueue.demo",),
    ("rqueue.cli",),
    ("rqueue.contrib.command_line", "rqueue.contrib.job_wrappers", "rqueue.contrib.variables"),
    ("rqueue.contrib.starlette", "rqueue.contrib.outbox"),
    ("rqueue.contrib.logs", "rqueue.contrib.opentelemetry", "rqueue.contrib.sentry"),
    ("rqueue.contrib", "rqueue.contrib.django", "rqueue.contrib.flask", "rqueue.contrib.fastapi"),
]

LATE = {("rqueue_workers", "rqueue.cli"), ("rqueue", "rqueue.cli")}
"""Upward, and only inside a function: `python -m rqueue` is the command `rqueue`, `python -m
rqueue_workers` the command `rqueue worker`."""

ROOT_MODULES = {"errors", "logs", "settings"}
"""All that stand beside the packages of rqueue: a new module goes into a room."""


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    line: int
    lazy: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.importer} line {self.line} imports {self.imported}"


def modules() -> dict[str, Path]:
    found = {}
    for base in (ROOT, ROOT / "workers"):
        for package in ("rqueue", "rqueue_workers"):
            for path in (base / package).rglob("*.py"):
                name = ".".join(path.relative_to(base).with_suffix("").parts)
                found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()


ROOMS = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}


def owner(module: str) -> str | None:
    """The room that a module stands in."""
    if module in ("rqueue", "rqueue.__main__"):
        return "rqueue"
    while module and module not in ROOMS:
        module = module.rpartition(".")[0]
    return None if module == "rqueue" else module or None


def rank(module: str) -> int:
    """The number of a module's layer; one that is in no room (see the first test) is on top."""
    return ROOMS.get(owner(module) or "", len(LAYERS))


@cache
def imports(module: str) -> tuple[Import, ...]:
    """What a module imports of ours, also late or for type checkers alone."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def visit(node: ast.AST, lazy: bool, typing: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for child in node.body:
                yield from visit(child, lazy, True)
            for child in node.orelse:
                yield from visit(child, lazy, typing)
            return
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                source = ".".join([*above, *([node.module] if node.module else [])])
            # `from package import name`: the name may be a module, and then it is what is meant.
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                targets.append(inner if inner in MODULES else source)
        for target in targets:
            if target.split(".")[0] in ("rqueue", "rqueue_workers"):
                yield Import(module, target, getattr(node, "lineno", 0), lazy, typing)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                yield from visit(child, lazy or inside, typing)

    return tuple(visit(ast.parse(path.read_text(encoding="utf-8")), False, False))


def test_every_module_has_a_layer() -> None:
    without = [module for module in sorted(MODULES) if not owner(module)]
    assert without == [], "enter these into the table of layers"


def test_few_modules_stand_beside_the_rooms() -> None:
    there = {path.stem for path in (ROOT / "rqueue").glob("*.py")}
    assert there == ROOT_MODULES | {"__init__", "__main__"}


def goes_up(found: Import) -> bool:
    """Whether it is of a higher layer, or of one beside, and not one of those that may be."""
    mine, its = owner(found.importer), owner(found.imported)
    higher = its != mine and rank(found.imported) >= rank(found.importer)
    return higher and not found.typing and not (found.lazy and (mine, its) in LATE)


def test_nobody_imports_a_higher_layer_or_one_beside() -> None:
    found = (one for module in sorted(MODULES) for one in imports(module))
    assert [str(one) for one in found if goes_up(one)] == []


def test_nothing_imports_in_circles() -> None:
    """Not late, nor for type checkers: a knot held together by late imports is a knot."""
    edges = {
        m: {
            f.imported
            for f in imports(m)
            if f.imported in MODULES and not (f.typing and owner(m) != owner(f.imported))
        }
        - {m}
        for m in MODULES
    }
    done: set[str] = set()

    def walk(module: str, trail: list[str]) -> None:
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module in done:
            return
        for target in sorted(edges[module]):
            walk(target, [*trail, module])
        done.add(module)

    for module in sorted(MODULES):
        walk(module, [])


def test_the_importing_of_a_higher_layer_would_be_found(tmp_path: Path) -> None:
    source = (
        "from typing import TYPE_CHECKING\n"
        "import rqueue.client._sync.queue\n"
        "from rqueue.protocol import scripts\n"
        "if TYPE_CHECKING:\n"
        "    from rqueue.cli import root\n"
        "def f():\n"
        "    from .server import running\n"
    )
    path = tmp_path / "probe.py"
    path.write_text(source)
    MODULES["rqueue.embedded.probe"] = path
    try:
        found = [(f.imported, f.lazy, f.typing) for f in imports("rqueue.embedded.probe")]
    finally:
        del MODULES["rqueue.embedded.probe"]
    assert found == [
        ("rqueue.client._sync.queue", False, False),
        ("rqueue.protocol.scripts", False, False),
        ("rqueue.cli.root", False, True),
        ("rqueue.embedded.server", True, False),
    ]
