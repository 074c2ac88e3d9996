"""A Spark session fit for rqueue: what its commands, tests and examples use."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rqueue.spark.java import use_java
from rqueue.spark.quiet_java import start_java
from rqueue.spark.registration import register, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session"]


def session(
    master: str = "local[*]", app: str = "rqueue", *, quiet: bool = False, **conf: Any
) -> SparkSession:
    """A session with rqueue's sources registered; an existing one of this process is used again.

    master: as for spark-submit. conf: further settings of Spark, also under names with dots:
    `session(**{"spark.executor.memory": "2g"})`; they win over ours, which are: UTC, Arrow, no web
    UI, no console progress, only errors logged, and, for a master on this machine, nothing that
    listens beyond it. quiet: for programs that report errors themselves; Spark logs nothing, and
    its banner is not printed, unless `spark.log.level` is among the settings, and it does not note
    where in the program each column was made. Raises SparkMissing and JavaMissing.
    """
    require_spark()
    use_java()
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    if find_spec("pandas") is None:
        # Spark would try it for every function of Python's, and warn.
        settings["spark.sql.execution.pythonUDF.arrow.enabled"] = "false"
    if _is_here(master):
        # The workers run this very Python, with what is installed beside it.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if quiet:
        settings["spark.python.sql.dataFrameDebugging.enabled"] = "false"
    settings |= conf
    if quiet and "spark.log.level" not in conf:
        del settings["spark.log.level"]  # Spark prints that it sets it
        if not start_java(settings | {"spark.master": master, "spark.app.name": app}):
            settings["spark.log.level"] = "OFF"
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def _is_here(master: str) -> bool:
    if master.startswith("local"):
        return True
    return urlsplit(master).hostname in ("127.0.0.1", "localhost", "::1")
