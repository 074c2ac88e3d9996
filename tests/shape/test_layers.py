"""Who may import whom: lower layers never import higher ones, and nothing imports in circles."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# From low to high. A package stands for all its modules. A new module has to be entered here.
LAYERS: list[tuple[str, set[str]]] = [
    (
        "vocabulary",
        {
            "rqueue.escape",
            "rqueue.model.words",
            "rqueue.logs",
            "rqueue.errors",
            "rqueue.model.expect",
            "rqueue.model.names",
            "rqueue.model.ids",
            "rqueue.model.job",
            "rqueue.protocol.keys",
            "rqueue.model.terms",
            "rqueue.model.signing",
            "rqueue.model.envelope",
            "rqueue.model.server_url",
            "rqueue.settings",
            "rqueue.tasks.retry",
            "rqueue.tasks.control",
            "rqueue.tasks.options",
            "rqueue.tasks.signature",
            "rqueue.tasks.context",
            "rqueue.tasks.enqueuer",
            "rqueue.task",
            "rqueue.model.history_batch",
            "rqueue.model.labels",
            "rqueue.protocol.waiting",
        },
    ),
    ("scripts", {"rqueue.protocol.scripts"}),
    (
        "store",
        {
            "rqueue.protocol.commands",
            "rqueue.protocol.error_mapping",
            "rqueue.protocol.repeats",
            "rqueue.transport.sentinel",
            "rqueue.transport.tls",
            "rqueue.transport.redis_client",
            "rqueue.transport.server_check",
            "rqueue.transport.resp",
            "rqueue.transport.connection",
            "rqueue.transport.async_connection",
            "rqueue.transport.thread_connections",
            "rqueue.transport.async_connections",
        },
    ),
    (
        "client",
        {
            "rqueue",  # the public names: rqueue/__init__.py alone
            "rqueue.client._sync.queue",
            "rqueue.client._async.queue",
            "rqueue.client.default_queues",
            "rqueue.transport.discovery",
            "rqueue.protocol.job_packer",
            "rqueue.protocol.result_wait",
            "rqueue.client._sync.job_handle",
            "rqueue.client._async.job_handle",
            "rqueue.protocol.put_buffer",
            "rqueue.client.put_handle",
            "rqueue.client._sync.putter",
            "rqueue.client._async.putter",
            "rqueue.protocol.credit",
            "rqueue.protocol.credit_window",
            "rqueue.model.job_order",
            "rqueue.protocol.recall",
            "rqueue.protocol.settling",
            "rqueue.protocol.consumer_state",
            "rqueue.protocol.settled",
            "rqueue.client._sync.consumer",
            "rqueue.client._sync.consumer_steps",
            "rqueue.client._async.consumer",
            "rqueue.client._async.consumer_steps",
            "rqueue.transport.lease_renewer",
            "rqueue.transport.wake_listener",
            "rqueue.transport.async_wake_listener",
            "rqueue.inspector",
        },
    ),
    (
        "leaves",
        {
            "rqueue.local_server.binaries",
            "rqueue.local_server.child_process",
            "rqueue.local_server.embedded",
            "rqueue.testing",
            "rqueue.demo",
            "rqueue.spark",
            "rqueue.pipeline",
            "rqueue.web",
            "rqueue.cli",
            "rqueue_workers",
        },
    ),
]

# Between leaves: only these. `lazily` means inside a function, when it is called.
LEAVES: dict[str, dict[str, str]] = {
    "rqueue.local_server.embedded": {
        "rqueue.local_server.binaries": "",
        "rqueue.local_server.child_process": "",
    },
    "rqueue.testing": {"rqueue.local_server.embedded": ""},
    "rqueue.demo": {
        "rqueue.local_server.embedded": "",
        "rqueue.spark": "lazily",
        "rqueue.pipeline": "lazily",
        "rqueue_workers": "lazily",
    },
    "rqueue.pipeline": {"rqueue.spark": ""},
    "rqueue.cli": {
        "rqueue.local_server.binaries": "lazily",
        "rqueue.local_server.embedded": "lazily",
        "rqueue.demo": "lazily",
        "rqueue.spark": "lazily",
        "rqueue.pipeline": "lazily",
        "rqueue.web": "lazily",
        "rqueue_workers": "lazily",
    },
    "rqueue_workers": {"rqueue.cli": "lazily"},
}


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    line: int
    lazy: bool

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


def owner(module: str) -> str | None:
    """The entry of the table that a module belongs to."""
    if module == "rqueue":
        return module
    entries = {entry for _, names in LAYERS for entry in names} - {"rqueue"}
    while module:
        if module in entries:
            return module
        module = module.rpartition(".")[0]
    return None


def rank(module: str) -> int:
    """The number of a module's layer; one that is in no layer (see the first test) is on top."""
    mine = owner(module)
    return next((i for i, (_, names) in enumerate(LAYERS) if mine in names), len(LAYERS))


def imports(module: str) -> Iterator[Import]:
    """What a module imports of ours when it runs; what only type checkers see is left out."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for child in node.orelse:
                yield from visit(child, lazy)
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
                yield Import(module, target, getattr(node, "lineno", 0), lazy)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, lazy or inside)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_module_has_a_layer(module: str) -> None:
    assert owner(module), f"enter {module} into the table of layers"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_nobody_imports_a_higher_layer(module: str) -> None:
    upward = [str(found) for found in imports(module) if rank(found.imported) > rank(module)]
    assert upward == []


@pytest.mark.parametrize("module", sorted(m for m in MODULES if rank(m) == len(LAYERS) - 1))
def test_leaves_import_each_other_only_where_allowed(module: str) -> None:
    mine = owner(module)
    assert mine
    wrong = []
    for found in imports(module):
        other = owner(found.imported)
        if rank(found.imported) < len(LAYERS) - 1 or other == mine:
            continue
        allowed = LEAVES.get(mine, {}).get(other or "")
        if allowed is None or (allowed == "lazily" and not found.lazy):
            wrong.append(str(found) + (" at import time" if allowed else ""))
    assert wrong == []


def test_nothing_imports_in_circles() -> None:
    """Not even lazily within one layer: a knot held together by late imports is a knot."""
    edges = {m: {f.imported for f in imports(m) if f.imported in MODULES} - {m} for m in MODULES}
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
        "from rqueue import scripts\n"
        "if TYPE_CHECKING:\n"
        "    from rqueue.cli import main\n"
        "def f():\n"
        "    from .embedded import running\n"
    )
    path = tmp_path / "probe.py"
    path.write_text(source)
    MODULES["rqueue.probe"] = path
    try:
        found = [(f.imported, f.lazy) for f in imports("rqueue.probe")]
    finally:
        del MODULES["rqueue.probe"]
    assert found == [
        ("rqueue.client._sync.queue", False),
        ("rqueue.protocol.scripts", False),
        ("rqueue.local_server.embedded", True),
    ]
