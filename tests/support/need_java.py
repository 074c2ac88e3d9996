"""Sees to it that there is a Java for the tests on Spark: `make test` runs this first.

Where none is, and we may (root, on a system with apt), it installs a headless one; else it ends
with the one line that says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from rqueue.spark.errors import JavaMissing
from rqueue.spark.java import find_java

PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless")


def main() -> int:
    try:
        find_java()
        return 0
    except JavaMissing as missing:
        if not may_install():
            print(f"make: {missing}", file=sys.stderr)
            return 1
    try:
        install()
        found = find_java()
    except (JavaMissing, OSError, subprocess.CalledProcessError) as error:
        print(f"make: Java could not be installed: {error}", file=sys.stderr)
        return 1
    print(f"make: Java {found.version} is installed")
    return 0


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install() -> None:
    """Install the first of the packages that this release of the system has."""
    print("make: Spark needs Java, installing a headless one", flush=True)
    package = known()
    if package is None:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        package = known() or PACKAGES[0]
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", package]
    subprocess.run(command, check=True, env=environ)


def known() -> str | None:
    for package in PACKAGES:
        said = subprocess.run(["apt-cache", "show", package], capture_output=True, check=False)
        if said.returncode == 0 and said.stdout:
            return package
    return None


if __name__ == "__main__":
    sys.exit(main())
