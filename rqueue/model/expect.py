"""Checks of arguments where they are passed: a wrong type is named with what to pass instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from rqueue.errors import ConfigError
from rqueue.text.escape import shown

__all__ = ["expect", "expect_number", "misfit", "shown"]


def expect(setting: str, value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Raise ConfigError unless `value` is of one of these kinds; `what` says what to pass."""
    if not isinstance(value, kinds):
        raise ConfigError(setting, f"{shown(value)} is not {what}")


def expect_number(
    setting: str, value: object, what: str, *, least: float = 0, whole: bool = False
) -> None:
    """Raise ConfigError unless `value` is a number of at least `least`; a bool is none."""
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or value != value:
        raise ConfigError(setting, f"{shown(value)} is not {what}")
    if value < least:
        raise ConfigError(setting, f"{shown(value)} is less than {least:g}")


def misfit(function: Callable[..., Any], given: Sequence[str]) -> str:
    """Why a function cannot be called with these arguments, by position; "" where it can, or where
    it does not say what it takes."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of C
        return ""
    try:
        signature.bind(*given)
    except TypeError as error:
        return f"it takes {signature}, and is called with ({', '.join(given)}): {error}"
    return ""
