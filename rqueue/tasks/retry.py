"""When a failed job runs again: pure functions of the attempt's number and a random number.

The delay after attempt n is, before jitter,

    exponential    delay * multiplier ** (n - 1)       (A-21)
    linear         delay * n
    fixed          delay

and jitter spreads it evenly over `1 - jitter .. 1 + jitter` times that value. No delay exceeds
`max_delay`: the value before jitter is held to `max_delay / (1 + jitter)`, so that jobs which
reached the limit stay spread instead of coming back all at once.

Where the job comes back: without a delay, at its old position; with one, at the head of its level
when it is due (`retry_at="head"`), or behind everything (`retry_at="tail"`).
"""

from __future__ import annotations

import random as _random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.tasks.other_words import refuse_unknown

__all__ = ["DEFAULT_RETRY", "NO_RETRY", "RetryPolicy", "check_retry", "error_name"]

Backoff = Literal["exponential", "linear", "fixed"]
Rule = type[BaseException] | str


def error_name(kind: type[BaseException]) -> str:
    """The dotted name of an exception class as rules and records spell it; builtins go bare."""
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _rules(setting: str, rules: object) -> tuple[str, ...]:
    if isinstance(rules, str | type):
        rules = (rules,)
    if not isinstance(rules, Sequence):
        raise ConfigError(setting, f"{shown(rules)} is no list of exception classes or their names")
    names = []
    for rule in rules:
        if isinstance(rule, type) and issubclass(rule, BaseException):
            names.append(error_name(rule))
        elif isinstance(rule, str) and rule:
            names.append(rule.removeprefix("builtins."))
        else:
            raise ConfigError(
                setting, f"{shown(rule)} is neither an exception class nor a dotted name"
            )
    return tuple(names)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a job may fail, what of, and how long it waits in between.

    `max_deliveries`: attempts in all, the first included (A-22), 1 = never again;
    0 = the queue's, which is 10 unless it was configured otherwise.
    `backoff`, `delay` (s), `multiplier`, `max_delay` (s), `jitter` (0 to 1): see the module.
    `retry_on`: when not empty, only these exceptions are tried again; `give_up_on`: these never,
    and this rule wins. Both take exception classes or dotted names, hold names, cover subclasses.
    `retry_at`: "head" or "tail" of the job's level.

    Raises ConfigError.
    """

    max_deliveries: int = 0
    backoff: Backoff = "exponential"
    delay: float = 1.0
    multiplier: float = 2.0
    max_delay: float = 600.0
    jitter: float = 0.25
    retry_on: Sequence[Rule] = ()
    give_up_on: Sequence[Rule] = ()
    retry_at: Literal["head", "tail"] = "head"

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuse fields that there are not, by name."""
        if not _NAMES.issuperset(given):
            refuse_unknown(given, _NAMES, "a RetryPolicy")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        check_limit("max_deliveries", self.max_deliveries)
        if self.backoff not in ("exponential", "linear", "fixed"):
            raise ConfigError("backoff", f"{self.backoff!r} is not exponential, linear or fixed")
        if self.retry_at not in ("head", "tail"):
            raise ConfigError("retry_at", f"{self.retry_at!r} is neither 'head' nor 'tail'")
        for name, least, limit in (
            ("delay", 0.0, 1e9),
            ("multiplier", 1.0, 1e6),
            ("max_delay", 0.0, 1e9),
            ("jitter", 0.0, 1.0),
        ):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not least <= value <= limit:
                raise ConfigError(
                    name, f"{shown(value)} is not a number from {least:g} to {limit:g}"
                )
        object.__setattr__(self, "retry_on", _rules("retry_on", self.retry_on))
        object.__setattr__(self, "give_up_on", _rules("give_up_on", self.give_up_on))

    def delay_after(self, attempt: int, random: Callable[[], float] = _random.random) -> float:
        """Seconds to wait after the `attempt`-th failure (from 1); `random()` is in 0 <= r < 1."""
        if attempt < 1:
            raise ValueError(f"attempts count from 1, not {attempt}")
        if self.backoff == "fixed":
            value = self.delay
        elif self.backoff == "linear":
            value = self.delay * attempt
        else:
            try:
                value = self.delay * self.multiplier ** (attempt - 1)
            except OverflowError:
                value = self.max_delay if self.delay else 0.0
        value = min(value, self.max_delay / (1 + self.jitter))
        if self.jitter:
            value *= 1 + self.jitter * (2 * random() - 1)
        return value

    def retries(self, error: BaseException) -> bool:
        """Whether the rules let a job that raised `error` run again (its count aside)."""
        if not self.retry_on and not self.give_up_on:
            return True
        names = {
            error_name(kind) for kind in type(error).__mro__ if issubclass(kind, BaseException)
        }
        if not names.isdisjoint(self.give_up_on):
            return False
        return not self.retry_on or not names.isdisjoint(self.retry_on)

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as the envelope's option `retry` carries it."""
        changed = {}
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                changed[name] = list(value) if isinstance(value, tuple) else value
        return changed

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RetryPolicy:
        """The policy that `to_dict` described. Raises ConfigError for anything unknown."""
        for name in data:
            if name not in _DEFAULTS:
                raise ConfigError("retry", f"there is no field {name!r}")
        return cls(**data)


def check_limit(setting: str, most: object) -> None:
    """Refuse what is no number of attempts that a job may have (None: not given). Raises
    ConfigError, which says where "any number" is said."""
    if most is None or (type(most) is int and 0 <= most <= 1_000_000):
        return
    hint = "; a job without a limit: 0 in the queue's options (rqueue configure)"
    raise ConfigError(
        setting,
        f"{shown(most)} is not a whole number from 1 to 1,000,000, or 0: as the queue says{hint}",
    )


def check_retry(retry: object) -> RetryPolicy:
    """Return `retry` when it is a policy. Raises ConfigError, which shows one for a number."""
    if isinstance(retry, RetryPolicy):
        return retry
    times = type(retry) is int and 0 <= retry <= 1_000_000
    example = f"RetryPolicy(max_deliveries={retry + 1 if times else 4})"  # type: ignore[operator]
    means = f", for {retry} retries after the first attempt" if times else ""
    raise ConfigError("retry", f"{shown(retry)} is not a RetryPolicy; pass {example}{means}")


_DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(RetryPolicy)}

_NAMES = frozenset(f.name for f in fields(RetryPolicy))

DEFAULT_RETRY = RetryPolicy()
NO_RETRY = RetryPolicy(max_deliveries=1)
