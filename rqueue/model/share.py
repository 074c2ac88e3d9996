"""Weights of shares."""

from __future__ import annotations

from rqueue.errors import ConfigError
from rqueue.model.expect import shown

__all__ = ["OTHERS", "WEIGHT_MOST", "check_weight"]

WEIGHT_MOST = 1000
"""The greatest weight of a share; the least is 1."""

OTHERS = "*"
"""Stands for all shares of which nothing is said."""


def check_weight(weight: object) -> int:
    """Return `weight` when a share may have it. Raises ConfigError."""
    if type(weight) is not int or not 1 <= weight <= WEIGHT_MOST:
        raise ConfigError(
            "weight", f"{shown(weight)} is not a whole number from 1 to {WEIGHT_MOST}"
        )
    return weight
