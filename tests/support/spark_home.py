"""The folder that the Spark of tests runs from: PySpark's own, but quicker to start.

PySpark's package lets the Python processes of Spark import it from a zip without byte code, so that
each compiles 150 modules anew; here the zip is left out, and they find the package itself. Java
maps the classes of Spark from an archive (class data sharing) where there is one: `make java` makes
it, once for each Java and each PySpark. Both are in the environment (`.venv`), and tests run
without them too.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

from rqueue.spark.java import find_java

QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=256m"
)
"""For Java: compile fast rather than well, with room for all that is compiled, and collect with few
threads, and not since classes were loaded."""

PARTS = ("bin", "jars", "sbin")
"""What Java and its scripts need of PySpark's folder."""


@cache
def spark_home() -> Path:
    """The folder for SPARK_HOME; made where it is not there."""
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    package = Path(found.origin).parent
    home = Path(sys.prefix, f"spark-{_digest(str(package), version('pyspark'))}")
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=home.parent, prefix=f"{home.name}-"))
        for part in PARTS:
            (made / part).symlink_to(package / part)
        try:
            made.rename(home)
        except OSError:  # another process was first
            rmtree(made)
    return home


def use_spark_home() -> None:
    """Let the Spark of this process, and of those that it starts, run from `spark_home()`."""
    os.environ["SPARK_HOME"] = str(spark_home())


@cache
def quick_start() -> str:
    """What to tell a Java of Spark for it to start quickly: the archive too, where there is one."""
    archive = class_archive()
    return f"{QUICK} -XX:SharedArchiveFile={archive}" if archive.exists() else QUICK


@cache
def class_archive() -> Path:
    """Where the archive is for the Java that is found; another release would refuse it."""
    java = find_java()
    release = java.home / "release"
    said = release.read_text(encoding="utf-8") if release.exists() else str(java.version)
    return spark_home() / f"classes-{_digest(str(java.home), said)}.jsa"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
