"""The sources made known to a Spark session, and what has to be installed for it."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from rqueue.spark.errors import SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

__all__ = ["register", "register_source", "require_spark"]

_SOURCES = (
    ("rqueue.spark.history.source", "HistorySource"),
    ("rqueue.spark.jobs.source", "JobsSource"),
)


def require_spark() -> None:
    """Raise SparkMissing unless PySpark 4 and pyarrow are installed."""
    for package, least in (("pyspark", 4), ("pyarrow", 0)):
        try:
            found = version(package)
        except PackageNotFoundError:
            raise SparkMissing(f"{package} is not installed") from None
        if int(found.partition(".")[0]) < least:
            raise SparkMissing(f"{package} {found} is older than {least}.0")


def register(spark: SparkSession) -> None:
    """Make the formats `rqueue` and `rqueue-history` known to a session. Raises SparkMissing."""
    require_spark()
    for module, name in _SOURCES:  # they import PySpark
        register_source(spark, getattr(import_module(module), name))


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Make one format known to a session."""
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(source)
    except AnalysisException as error:
        # another session of this Java did it, and for a new one of its own Spark refuses
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
