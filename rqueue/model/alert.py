"""An alert of a queue."""

from __future__ import annotations

from typing import NamedTuple


class Alert(NamedTuple):
    """An arrival brought the queue to its `threshold`: at `at_ms` (ms since the epoch, by the
    queue's clock) it had `depth` jobs. Alerts of a queue are in the order of their ids."""

    id: str
    at_ms: int
    depth: int
    threshold: int
