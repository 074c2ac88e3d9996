"""Programs of the system that tests need: installed where they are missing and we may (root, on a
system with apt)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: Sequence[str], why: str) -> None:
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
