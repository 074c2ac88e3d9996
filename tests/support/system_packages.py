"""Programs of the system that tests need: installed where they are missing and we may (root, on a
system with apt)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence


def ensure(
    find: Callable[[], object], missing: type[Exception], packages: Sequence[str], why: str
) -> int:
    """See to it that `find` finds a program, which raises `missing` where there is none: install
    the first of these packages where we may, else say in one line what to do. The exit code."""
    try:
        find()
        return 0
    except missing as error:
        if not _may_install():
            print(f"make: {error}", file=sys.stderr)
            return 1
    try:
        _install(packages, why)
        print(f"make: installed {find()}")
    except (missing, OSError, subprocess.CalledProcessError) as error:
        print(f"make: it could not be installed: {error}", file=sys.stderr)
        return 1
    return 0


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(packages: Sequence[str], why: str) -> None:
    """Install the first of these packages that this release of the system has."""
    print(f"make: {why}", flush=True)
    package = _known(packages)
    if package is None:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        package = _known(packages) or packages[0]
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", package]
    subprocess.run(command, check=True, env=environ)


def _known(packages: Sequence[str]) -> str | None:
    for package in packages:
        said = subprocess.run(["apt-cache", "show", package], capture_output=True, check=False)
        if said.returncode == 0 and said.stdout:
            return package
    return None
