"""Sees to it that there is a Java for the tests on Spark: `make test` runs this first.

Where none is, and we may (root, on a system with apt), it installs a headless one; else it ends
with the one line that says what to do.
"""

from __future__ import annotations

import sys

from rqueue.spark.errors import JavaMissing
from rqueue.spark.java import find_java
from tests.support.system_packages import ensure

PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless")


def main() -> int:
    why = "Spark needs Java, installing a headless one"
    return ensure(find_java, JavaMissing, PACKAGES, why)


if __name__ == "__main__":
    sys.exit(main())
