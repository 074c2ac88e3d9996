"""Commands go to Redis through `rqueue/transport`, built in `rqueue/protocol/commands`.

A module that calls redis-py's methods itself knows keys and replies that the protocol's calls know
already.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from redis.commands import core

ROOT = Path(__file__).resolve().parents[2]


def methods(*kinds: type) -> set[str]:
    return {name for kind in kinds for name in dir(kind) if not name.startswith("_")}


COMMANDS = methods(core.CoreCommands) | {"execute_command", "pipeline"}

UNMISTAKABLE = methods(
    core.HashCommands,
    core.ListCommands,
    core.ScanCommands,
    core.ScriptCommands,
    core.SetCommands,
    core.SortedSetCommands,
    core.StreamCommands,
) - methods(list, set, str) | {"execute_command", "hstrlen", "getrange", "hscan", "mget"}
"""No other thing has methods of these names, so whatever they are called on is a client."""

CLIENTS = {"client", "redis", "pipe", "_client", "_redis", "walk"}
"""What a client of redis-py, or its pipeline, is called."""


def raw_commands(source: str) -> Iterator[str]:
    """The calls of a client's own methods in a module's text."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        on, command = node.func.value, node.func.attr
        if isinstance(on, ast.Call):  # self._redis().xread(...)
            on = on.func
        name = on.attr if isinstance(on, ast.Attribute) else getattr(on, "id", "")
        if command in COMMANDS and (name in CLIENTS or command in UNMISTAKABLE):
            yield f"line {node.lineno}: {name}.{command}"


def files() -> list[str]:
    found = [
        *(ROOT / "rqueue").rglob("*.py"),
        *(ROOT / "workers" / "rqueue_workers").rglob("*.py"),
    ]
    names = [str(path.relative_to(ROOT)) for path in found]
    return sorted(name for name in names if not name.startswith("rqueue/transport/"))


def test_only_the_transport_sends_commands() -> None:
    found = [
        f"{name} {one}"
        for name in files()
        for one in raw_commands((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert found == [], "build these in rqueue/protocol/commands, send them by the transport"


def test_a_raw_command_would_be_found() -> None:
    source = (
        "def f(client):\n    client.hget('k', 'f')\n    self.redis.pipeline()\n    d.get('k')\n"
        "    self._redis().ping()\n    server.zrange('k', 0, -1)\n    b.ping()\n"
    )
    assert list(raw_commands(source)) == [
        "line 2: client.hget",
        "line 3: redis.pipeline",
        "line 5: _redis.ping",
        "line 6: server.zrange",
    ]
