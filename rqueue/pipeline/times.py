"""When an attempt began, also if its worker could not say so any more; and whose time is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["BEGUN", "OWN", "begun"]

BEGUN = """coalesce(started, CASE WHEN outcome IN ('crash', 'dead')
  AND get_json_object(cause, '$.kind') = 'time_limit' THEN least(finished, greatest(
    timestamp_millis(unix_millis(finished)
      - CAST(1000 * CAST(get_json_object(cause, '$.limit') AS DOUBLE) AS BIGINT)),
    acquired, enqueued, due)) END)"""
"""SQL over a row of history: when the attempt began; null where that is not known.

An attempt that was killed at its hard limit and has no start ran for the limit: it began that long
before its end, though not before the worker had it. Where the limit is not known either, nothing is
guessed.
"""

OWN = "worker RLIKE ':[0-9]+:[0-9a-f]+$'"
"""SQL over a row of history: true if a consumer of one's own had the job, by the name that it gets
without another one. `started` is then when the job came: its time is how long it was held."""


def begun() -> Column:
    """`BEGUN` as a column."""
    return F.expr(BEGUN)
