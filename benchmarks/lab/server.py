"""A private server for one run, and what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from rqueue.embedded.binaries import ServerBinary, inspect, server_binaries
from rqueue.embedded.server import EmbeddedRedis


def newest() -> ServerBinary:
    """The newest server program of this machine."""
    return max(server_binaries(), key=lambda binary: binary.version)


def chosen(which: str) -> ServerBinary:
    """`newest`, a name such as `redis70`, or a path."""
    if which == "newest":
        return newest()
    for binary in server_binaries():
        if which == f"{_kind(binary)}{binary.version[0]}{binary.version[1]}":
            return binary
    named = inspect(Path(which), "the command line") if "/" in which else None
    if named is None:
        known = ", ".join(f"{_kind(b)}{b.version[0]}{b.version[1]}" for b in server_binaries())
        raise SystemExit(f"no server {which!r} on this machine; there are: {known}")
    return named


def _kind(binary: ServerBinary) -> str:
    return binary.path.name.removesuffix("-server")


def private_server(which: str, *, aof: bool) -> EmbeddedRedis:
    """A server of this run alone, on a loopback port; not started yet."""
    binary = chosen(which)
    config: dict[str, str | int] = {"appendonly": "yes" if aof else "no", "save": ""}
    return EmbeddedRedis(port=0, binary=binary, config=config)


def describe(server: EmbeddedRedis, *, aof: bool) -> str:
    """Kind, version and durability, without paths."""
    version = ".".join(map(str, server.binary.version))
    return f"{_kind(server.binary)} {version}, append-only file {'on' if aof else 'off'}, TCP"


@dataclass(frozen=True)
class Usage:
    """A server's use so far: seconds of CPU, commands, and those of them that scripts sent."""

    cpu: float
    commands: int
    calls: dict[str, int]
    usec: dict[str, int]

    def since(self, before: Usage) -> Usage:
        """The use since then."""
        names = self.calls.keys()
        return Usage(
            self.cpu - before.cpu,
            self.commands - before.commands,
            {n: d for n in names if (d := self.calls[n] - before.calls.get(n, 0))},
            {n: d for n in names if (d := self.usec[n] - before.usec.get(n, 0))},
        )

    @property
    def script_us(self) -> int:
        """Microseconds spent in scripts, all they called included."""
        return sum(us for name, us in self.usec.items() if name in SCRIPTS)

    def sent(self) -> int:
        """Commands that rqueue's clients sent; what scripts called is not among them."""
        return sum(n for name, n in self.calls.items() if name.partition("|")[0] in SENT)


SENT = ("evalsha", "eval", "script", "blpop", "client", "hello", "ping", "select", "info", "auth")
SCRIPTS = ("eval", "evalsha", "fcall")


def usage(client: redis.Redis) -> Usage:
    """Look; a look is two commands itself."""
    facts: Any = client.info("cpu")
    stats: Any = client.info("stats")
    rows: Any = client.info("commandstats")
    names = {name.removeprefix("cmdstat_"): row for name, row in rows.items()}
    return Usage(
        facts["used_cpu_sys"] + facts["used_cpu_user"],
        stats["total_commands_processed"],
        {name: row["calls"] for name, row in names.items()},
        {name: row["usec"] for name, row in names.items()},
    )


def memory(client: redis.Redis) -> int:
    """Bytes that the data takes."""
    facts: Any = client.info("memory")
    return int(facts["used_memory"])
