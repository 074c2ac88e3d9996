"""The rows of the table, each named by what it measures. Importing this enters all of them."""

from benchmarks.rows import (
    cost,
    drain,
    enqueue,
    groups,
    history,
    hooks,
    idle,
    jobs,
    latency,
    limits,
    reports,
    scale,
    schedule,
    selectors,
    spark,
    spark_kill,
    start,
)
from benchmarks.rows.row import ROWS

__all__ = [
    "ROWS",
    "cost",
    "drain",
    "enqueue",
    "groups",
    "history",
    "hooks",
    "idle",
    "jobs",
    "latency",
    "limits",
    "reports",
    "scale",
    "schedule",
    "selectors",
    "spark",
    "spark_kill",
    "start",
]
