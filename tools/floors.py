"""`make test-floors`: the tests that need no Spark, on the lowest and on the newest versions of all
dependencies that pyproject.toml allows, on each Python.

    python -m tools.floors [VERSION ...] [lowest|newest ...] [-- pytest's arguments]

uv makes the environments, below .venv-floors. Only wheels are taken: where a Python has none of the
lowest version, the next one that has one is the floor there. On the first Python each floor itself
must be what runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.interpreters import interpreter

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-floors"
PYTHONS = ("3.11", "3.12", "3.13")
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
UV = (sys.executable, "-m", "uv", "--quiet", "pip")
NAMES = "model tasks protocol transport client testing cli contrib workers conformance/scenarios"
TESTS = [f"tests/{name}" for name in NAMES.split()]


def needs() -> list[Requirement]:
    """What rqueue, its extras and the tests declare, without Spark's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    spark = {Requirement(text).name for text in extras["spark"]}
    declared = project["dependencies"] + [text for name in extras for text in extras[name]]
    found = [Requirement(text) for text in declared]
    return [need for need in found if need.name not in spark or need.name == "numpy"]


def environment(version: str, python: str, resolution: str) -> Path:
    """The Python of an environment that has just been made. Raises CalledProcessError."""
    folder = FOLDER / f"{version}-{resolution}"
    command = [sys.executable, "-m", "uv", "--quiet", "venv", "--clear", "--python", python, folder]
    subprocess.run(command, check=True)
    made = folder / "bin" / "python"
    listed = folder / "needs.txt"
    listed.write_text("".join(f"{need}\n" for need in needs()))
    choice = ["--resolution", RESOLUTIONS[resolution], "--only-binary", ":all:"]
    subprocess.run([*UV, "install", "--python", made, *choice, "-r", listed], check=True)
    subprocess.run([*UV, "install", "--python", made, "--no-deps", "-e", ROOT], check=True)
    return made


def installed(python: Path) -> dict[str, Version]:
    """Versions by name."""
    command = [*UV, "list", "--python", python, "--format", "json"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {canonicalize_name(one["name"]): Version(one["version"]) for one in json.loads(said)}


def unreached(python: Path) -> list[str]:
    """Floors that are not what is installed: another package asks for more."""
    found, missed = installed(python), []
    for need in needs():
        if need.marker is None or need.marker.evaluate():
            version = found[canonicalize_name(need.name)]
            floors = [one.version for one in need.specifier if one.operator == ">="]
            if any(Version(floor) != version for floor in floors):
                missed.append(f"{need}: the lowest that can be installed is {version}")
    return missed


def main(arguments: list[str]) -> int:
    """Make each environment and run the tests in it."""
    chosen, _, given = " ".join(arguments).partition("--")
    words = set(chosen.split())
    if unknown := words - {*PYTHONS, *RESOLUTIONS}:
        sys.exit(f"test-floors: {', '.join(sorted(unknown))}: neither a Python nor a resolution")
    tests = given.split() or ["-n", "logical", *TESTS]
    failed = []
    for version in [one for one in PYTHONS if one in words] or PYTHONS:
        python = interpreter(version)
        if python is None:
            sys.exit(f"test-floors: no Python {version} that can make environments")
        for resolution in [one for one in RESOLUTIONS if one in words] or RESOLUTIONS:
            name = f"Python {version}, {resolution} versions"
            print(f"test-floors: {name}", flush=True)
            made = environment(version, python, resolution)
            missed = unreached(made) if (version, resolution) == (PYTHONS[0], "lowest") else []
            print(*missed, sep="\n", end="\n" if missed else "")
            run = [made, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
            clean = {**os.environ, "PATH": f"{made.parent}{os.pathsep}{os.environ['PATH']}"}
            if missed or subprocess.run(run, cwd=ROOT, env=clean, check=False).returncode:
                failed.append(name)
    print(*[f"test-floors: failed: {name}" for name in failed], sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
