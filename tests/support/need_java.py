"""Sees to it that there is a Java for the tests on Spark: `make test` runs this first.

Where none is, and we may (root, on a system with apt), it installs a headless one; else it ends
with the one line that says what to do.
"""

from __future__ import annotations

import subprocess
import sys

from rqueue.spark.errors import JavaMissing
from rqueue.spark.java import find_java
from tests.support.system_packages import install, may_install

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
        install(PACKAGES, "Spark needs Java, installing a headless one")
        found = find_java()
    except (JavaMissing, OSError, subprocess.CalledProcessError) as error:
        print(f"make: Java could not be installed: {error}", file=sys.stderr)
        return 1
    print(f"make: Java {found.version} is installed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
