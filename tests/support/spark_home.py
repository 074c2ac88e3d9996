"""The folder that the Spark of tests runs from: PySpark's own, but quicker to start.

PySpark's package lets the Python processes of Spark import it from a zip without byte code, so that
each compiles 150 modules anew; here the zip is left out, and they find the package itself. Java
looks through all jars for a class that is in none, as Spark often asks for; here are those only
that have something to do with the tests. The folder is in the environment (`.venv`).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""For Java: compile fast rather than well, with room for all that is compiled, collect with few
threads, and not since classes were loaded, and load the classes of Spark without verifying that a
compiler made them, a quarter of what it takes to start. An archive of classes would save about as
much again, but to make it takes more than all Javas of a run save by it, and lets one core wait."""

PARTS = ("bin", "sbin")
"""What the scripts that start Java need of PySpark's folder."""

LEFT_OUT = re.compile(
    r"(spark-(connect|graphx|hive|kubernetes|mllib|repl|yarn)"
    r"|algebra|arpack|breeze|cats|lapack|spire"  # of spark-mllib
    r"|datanucleus|hive-(?!storage-api)\w+"  # of spark-hive
    r"|kubernetes|okhttp|vertx"  # of spark-kubernetes
    r"|netty-tcnative|scala-compiler)[-_].*"
)
"""Jars of what rqueue has nothing to do with, a third of them."""


@cache
def spark_home() -> Path:
    """The folder for SPARK_HOME; made where it is not there."""
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    package = Path(found.origin).parent
    digest = _digest(str(package), version("pyspark"), LEFT_OUT.pattern)
    home = Path(sys.prefix, f"spark-{digest}")
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=home.parent, prefix=f"{home.name}-"))
        for part in PARTS:
            (made / part).symlink_to(package / part)
        (made / "jars").mkdir()
        for jar in (package / "jars").iterdir():
            if not LEFT_OUT.fullmatch(jar.name):
                (made / "jars" / jar.name).symlink_to(jar)
        try:
            made.rename(home)
        except OSError:  # another process was first
            rmtree(made)
    return home


def use_spark_home() -> None:
    """Let the Spark of this process, and of those that it starts, run from `spark_home()`."""
    os.environ["SPARK_HOME"] = str(spark_home())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
