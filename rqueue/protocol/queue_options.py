"""A queue's own options: what may be set, and how that is said to the store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.names import check_queue
from rqueue.model.times import parse_duration
from rqueue.protocol.kind_words import kind_of
from rqueue.protocol.policies import POLICIES, lifetime, sorted_

__all__ = [
    "LIMITS",
    "DeleteIf",
    "Expired",
    "Overflow",
    "SortOrder",
    "configuration",
]

LIMITS = {
    "priorities": (1, 10),
    "max_deliveries": (0, 1_000_000),
    "max_crashes": (0, 1_000_000),
    "keep_ms": (1_000, 31_536_000_000),
    "history_rows_max": (0, 1_000_000_000),
    **{name: (least, most) for policy in POLICIES.values() for name, least, most in policy.options},
}
"""What a queue's own options may be; the script knows the same."""

NO_LIMIT = (
    *("max_deliveries", "max_crashes", "max_jobs", "max_bytes", "ring_jobs", "ring_bytes"),
    *("live_consumers", "max_consumers", "alert_depth"),
)
"""Those of them in which 0 is no limit."""

DeleteIf = Literal["never", "empty", "always"]
"""When a queue goes whose last consumer has left."""

Expired = Literal["end", "dead"]
"""What becomes of expired jobs: they end, or become dead letters."""

Overflow = Literal["reject", "block"]
"""What becomes of jobs that do not fit into a bounded queue: they are refused, or producers wait
for room first."""

SortOrder = Literal["ascending", "descending"]
"""Which sort key goes first, the least or the greatest."""


def configuration(
    priorities: int | None,
    max_deliveries: int | None,
    max_crashes: int | None,
    keep: float | str | timedelta | None,
    history_rows_max: int | None,
    ttl: float | str | timedelta | None = None,
    ttl_min: float | str | timedelta | None = None,
    ttl_max: float | str | timedelta | None = None,
    expired: Expired | None = None,
    kind: str | None = None,
    dead_to: str | None = None,
    expired_to: str | None = None,
    live_consumers: int | None = None,
    strict: bool | None = None,
    max_consumers: int | None = None,
    delete_if: DeleteIf | None = None,
    delete_after: float | str | timedelta | None = None,
    ring: int | None = None,
    *,
    max_jobs: int | None = None,
    overflow: Overflow | None = None,
    resume: int | None = None,
    count_held: bool | None = None,
    hold: bool | None = None,
    lifo: bool | None = None,
    sort: SortOrder | None = None,
    sticky: int | None = None,
    rebalance: bool | None = None,
    dead_letters: bool | None = None,
    alert_depth: int | None = None,
    max_bytes: int | None = None,
    ring_bytes: int | None = None,
) -> Mapping[str, int | str]:
    """The queue's own options as the store takes them; see `Queue.configure`.

    Raises ConfigError.
    """
    options: dict[str, int] = {}
    if priorities is not None:
        options["priorities"] = priorities
    if max_deliveries is not None:
        options["max_deliveries"] = max_deliveries
    if max_crashes is not None:
        options["max_crashes"] = max_crashes
    if keep is not None:
        options["keep_ms"] = round(parse_duration(keep, "keep") * 1000)
    if history_rows_max is not None:
        options["history_rows_max"] = history_rows_max
    for name, given in (("ttl", ttl), ("ttl_min", ttl_min), ("ttl_max", ttl_max)):
        if given is not None:
            options[f"{name}_ms"] = round(parse_duration(given, name) * 1000)
    if expired is not None:
        if expired not in ("end", "dead"):
            raise ConfigError("expired", f"{shown(expired)} is neither 'end' nor 'dead'")
        options["ttl_dead"] = int(expired == "dead")
    if strict is not None:
        expect("strict", strict, bool, "True or False")
        options["strict"] = int(strict)
    if delete_if is not None:
        if delete_if not in lifetime.WHEN:
            known = ", ".join(lifetime.WHEN)
            raise ConfigError("delete_if", f"{shown(delete_if)} is none of {known}")
        options["delete_if"] = lifetime.WHEN.index(delete_if)
    if delete_after is not None:
        options["delete_after_ms"] = round(parse_duration(delete_after, "delete_after") * 1000)
    for name, limit in (
        ("live_consumers", live_consumers),
        ("max_consumers", max_consumers),
        ("ring_jobs", ring),
        ("sticky", sticky),
        ("alert_depth", alert_depth),
        ("max_jobs", max_jobs),
        ("max_bytes", max_bytes),
        ("ring_bytes", ring_bytes),
    ):
        if limit is not None:
            options[name] = limit
    if overflow is not None:
        if overflow not in ("reject", "block"):
            raise ConfigError("overflow", f"{shown(overflow)} is neither 'reject' nor 'block'")
        options["overflow"] = int(overflow == "block")
    if resume is not None:
        options["resume"] = resume
    for name, flag in (
        ("count_held", count_held),
        ("hold", hold),
        ("lifo", lifo),
        ("rebalance", rebalance),
        ("dead_letters", dead_letters),
    ):
        if flag is not None:
            expect(name, flag, bool, "True or False")
            options[name] = int(flag)
    if sort is not None:
        if sort not in sorted_.ORDERS:
            raise ConfigError("sort", f"{shown(sort)} is neither 'ascending' nor 'descending'")
        options["descending"] = sorted_.ORDERS.index(sort)
    for name, value in options.items():
        least, most = LIMITS[name]
        if type(value) is int and least <= value <= most:
            continue
        if name == "keep_ms":
            raise ConfigError("keep", f"{shown(keep)} is not from 1 second to 365 days")
        if name in ("ttl_ms", "ttl_min_ms", "ttl_max_ms"):
            raise ConfigError(
                name.removesuffix("_ms"), f"{value / 1000:g} s is more than ten years"
            )
        start = "0, which is no limit," if name in NO_LIMIT else least
        name = "ring" if name == "ring_jobs" else name
        raise ConfigError(name, f"{shown(value)} is not a whole number from {start} to {most:,}")
    names: dict[str, int | str] = {**options}
    for name, target in (("dead_to", dead_to), ("expired_to", expired_to)):
        if target is not None:
            names[name] = check_queue(target) if target != "" else ""
    return names if kind is None else {**names, "v": kind_of(kind).stamp}
