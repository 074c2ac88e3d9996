"""Commands go to Redis through `rqueue/transport`, built in `rqueue/protocol/commands`.

A module that calls redis-py's methods itself knows keys and replies that the protocol's calls know
already. Those that still do are named here, and nothing else may begin to.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.commands.core import CoreCommands

ROOT = Path(__file__).resolve().parents[2]

COMMANDS = {name for name in dir(CoreCommands) if not name.startswith("_")} | {
    "execute_command",
    "pipeline",
}
CLIENTS = {"client", "redis", "pipe", "_client", "_redis", "walk"}
"""What a client of redis-py, or its pipeline, is called."""

READERS = {
    "rqueue/cli/bench.py",
    "rqueue/inspector/consumers.py",
    "rqueue/inspector/doctor/checkup.py",
    "rqueue/inspector/doctor/consumer_checks.py",
    "rqueue/inspector/doctor/note_checks.py",
    "rqueue/inspector/doctor/server_checks.py",
    "rqueue/inspector/doctor/ttl_checks.py",
    "rqueue/inspector/doctor/walk.py",
    "rqueue/inspector/history.py",
    "rqueue/inspector/jobs.py",
    "rqueue/inspector/queues.py",
    "rqueue/pipeline/archive/archiver.py",
    "rqueue/pipeline/archive/lag.py",
    "rqueue/pipeline/report/report.py",
    "rqueue/spark/access.py",
    "rqueue/spark/history/entries.py",
    "rqueue/spark/history/stream.py",
    "rqueue/spark/jobs/pages.py",
    "rqueue/spark/jobs/source.py",
    "rqueue/spark/write/sink.py",
    "rqueue/testing.py",
}
"""They look at keys that no script reads for them; `testing` moves a queue's clock."""


def raw_commands(source: str) -> Iterator[str]:
    """The calls of a client's own methods in a module's text."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        on = node.func.value
        if isinstance(on, ast.Call):  # self._redis().xread(...)
            on = on.func
        name = on.attr if isinstance(on, ast.Attribute) else getattr(on, "id", "")
        if name in CLIENTS and node.func.attr in COMMANDS:
            yield f"line {node.lineno}: {name}.{node.func.attr}"


def files() -> list[str]:
    found = [
        *(ROOT / "rqueue").rglob("*.py"),
        *(ROOT / "workers" / "rqueue_workers").rglob("*.py"),
    ]
    names = [str(path.relative_to(ROOT)) for path in found]
    return sorted(name for name in names if not name.startswith("rqueue/transport/"))


@pytest.mark.parametrize("name", [name for name in files() if name not in READERS])
def test_only_the_transport_sends_commands(name: str) -> None:
    found = list(raw_commands((ROOT / name).read_text(encoding="utf-8")))
    assert found == [], f"{name}: build it in rqueue/protocol/commands, send it by the transport"


@pytest.mark.parametrize("name", sorted(READERS))
def test_the_list_names_no_module_in_vain(name: str) -> None:
    assert list(raw_commands((ROOT / name).read_text(encoding="utf-8"))), "take it off the list"


def test_a_raw_command_would_be_found() -> None:
    source = (
        "def f(client):\n    client.hget('k', 'f')\n    self.redis.pipeline()\n    d.get('k')\n"
    )
    assert list(raw_commands(source)) == ["line 2: client.hget", "line 3: redis.pipeline"]
