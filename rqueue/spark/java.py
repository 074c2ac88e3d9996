"""The Java that Spark runs on: where one is, and which version it has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rqueue.spark.errors import JavaMissing

__all__ = ["OLDEST", "Java", "find_java", "use_java"]

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

ADVICE = "install one (Debian and Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"

_PLACES = (
    ("/usr/lib/jvm", "bin/java"),
    ("/Library/Java/JavaVirtualMachines", "Contents/Home/bin/java"),
    ("/opt/homebrew/opt", "libexec/openjdk.jdk/Contents/Home/bin/java"),
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was asked for its version: its `home` and the `version`, as in 17."""

    home: Path
    version: int


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java of 17 or newer: of JAVA_HOME, on PATH, or where systems install them.

    Raises JavaMissing, with the one line that says what to do.
    """
    environ = os.environ if environ is None else environ
    older: list[Java] = []
    for program in _candidates(environ):
        found = _ask(program)
        if found is None:
            continue
        if found.version >= OLDEST:
            return found
        older.append(found)
    there = f"; {older[0].home} is Java {older[0].version}" if older else ""
    raise JavaMissing(f"Spark needs Java {OLDEST} or newer{there}: {ADVICE}")


def use_java() -> Java:
    """Let the Spark that this process starts run on `find_java()`: JAVA_HOME is set to it."""
    found = find_java()
    os.environ["JAVA_HOME"] = str(found.home)
    return found


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path)
    for base, inner in _PLACES:
        yield from sorted(Path(base).glob(f"*/{inner}"), reverse=True)


def _ask(program: Path) -> Java | None:
    """The Java of a program; None for what does not answer as one (macOS has such a stub)."""
    if not os.access(program, os.X_OK):
        return None
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(answer.stderr + answer.stdout)
    return None if version is None else Java(program.resolve().parents[1], int(version[1]))
