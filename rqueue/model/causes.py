"""Why jobs are dead letters, as their causes say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["EXPIRED", "GAVE_UP", "why_dead"]

GAVE_UP = "gave up"
"""What a cause has as `why` where attempts were left."""

EXPIRED = "expired"
"""The kind of a cause where the time to live ended."""


def why_dead(cause: Mapping[str, Any] | None) -> str:
    """Why a job is dead, from its cause: "exhausted", its attempts are spent, or "gave up", the
    job, its policy or its consumer wanted no other; "expired", its time to live ended. "" without a
    cause."""
    if not cause:
        return ""
    if cause.get("kind") == EXPIRED:
        return EXPIRED
    if cause.get("why") == GAVE_UP or cause.get("kind") in ("forged", "undecodable", "rejected"):
        return GAVE_UP
    return "exhausted"
