"""rqueue on Spark: jobs and history as tables, and tables as jobs.

::

    import rqueue.spark

    rqueue.spark.register(spark)
    spark.read.format("rqueue-history").option("queues", "mail").load()

Needs the extra `rqueue[spark]` and a Java of 17 or newer. Importing this package loads neither;
see `docs/spark.md`.
"""

from __future__ import annotations

from rqueue.spark.errors import HistoryLost, JavaMissing, SparkMissing
from rqueue.spark.registration import register
from rqueue.spark.session import session

__all__ = ["HistoryLost", "JavaMissing", "SparkMissing", "register", "session"]
