"""Keys by what they mean for the next look at a queue: jobs to deliver, times, work left over.

Names are those of `lua/include/queue/key_types.lua`, without what follows a colon; a test holds the
two, and the page about keys, against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

__all__ = ["LEFT_OVER", "READY", "SCORES"]

SCORES: Mapping[str, Literal["due", "past", "order"]] = {
    "scheduled": "due",
    "ticks": "due",
    "expiring": "due",
    "periods": "due",
    "unsealed": "due",
    "tokens_due": "due",
    "consumers": "due",
    "notified": "due",
    "grants": "due",
    "outgoing": "due",
    "dead": "past",
    "rates": "past",
    "heads": "order",
    "group": "order",
    "class": "order",
    "refused": "order",
    "own": "order",
    "served": "order",
    "blocked": "order",
    "interested": "order",
    "standbys": "order",
    "producers": "order",
}
"""The sorted sets, by their scores: "due", a time in ms at which the queue has something to do;
"past", a time at which it has nothing to do; "order", no time at all."""

READY = ("ready", "due", "heads", "class", "refused", "own")
"""Keys of jobs that a pull may deliver."""

LEFT_OVER = ("owed", "outgoing", "reopened", "stops", "refills")
"""Keys that exist while the next look at the queue has something to do."""
