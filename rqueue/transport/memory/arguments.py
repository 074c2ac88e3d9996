"""Arguments and numbers, as Redis reads and writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from rqueue.transport.memory.keyspace import Refusal

__all__ = [
    "COMMANDS",
    "NOT_AN_INTEGER",
    "SYNTAX",
    "Command",
    "bounds_of",
    "command",
    "integer",
    "limited",
    "score",
    "score_bound",
    "score_text",
    "spread",
]

Command = tuple[Callable[..., Any], int]
"""What it does to a keyspace, and how many words it has: its name and its arguments; at least so
many where that is negative."""

COMMANDS: dict[bytes, Command] = {}
"""The commands that scripts may call too, by name."""

SYNTAX = "ERR syntax error"
NOT_AN_INTEGER = "ERR value is not an integer or out of range"
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_FLOAT = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?", re.I)
ZERO = ord("0")
_LEAST, _MOST = -(2**63), 2**63 - 1


def command(name: str, words: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what a command does, with its number of words (see `Command`)."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        COMMANDS[name.encode()] = (function, words)
        return function

    return register


def integer(text: bytes, problem: str = NOT_AN_INTEGER) -> int:
    """A whole number of 64 bits, in its one spelling."""
    if text.isdigit() and len(text) < 19 and (text[0] != ZERO or len(text) == 1):
        return int(text)  # as most of them are
    if _INTEGER.fullmatch(text):
        value = int(text)
        if _LEAST <= value <= _MOST:
            return value
    raise Refusal(problem)


def score(text: bytes, problem: str = "ERR value is not a valid float") -> float:
    """A score."""
    if not _FLOAT.fullmatch(text):
        raise Refusal(problem)
    return float(text) + 0.0  # no -0: small sets of Redis have none either


def score_bound(text: bytes) -> tuple[float, bool]:
    """One end of a range of scores, and whether it is left out itself."""
    without = text[:1] == b"("
    return score(text[1:] if without else text, "ERR min or max is not a float"), without


def score_text(value: float) -> bytes:
    """A score as it is written."""
    if math.isinf(value):
        return b"inf" if value > 0 else b"-inf"
    if value == int(value) and abs(value) < 1e17:
        return b"%d" % int(value)
    return b"%.17g" % value


def bounds_of(first: int, last: int, length: int) -> tuple[int, int]:
    """The places from the first to before the one behind the last, which count from the end where
    they are negative."""
    first = max(0, first + length) if first < 0 else first
    last = last + length if last < 0 else last
    return first, max(first, min(last, length - 1) + 1)


def limited(options: Sequence[bytes]) -> tuple[int, int | None, bool]:
    """What LIMIT and WITHSCORES say behind a range: how many are passed over, how many are wanted
    (None: all), and whether with their scores."""
    offset, count, scores, at = 0, None, False, 0
    while at < len(options):
        word = options[at].upper()
        if word == b"WITHSCORES":
            scores, at = True, at + 1
        elif word == b"LIMIT" and at + 2 < len(options):
            offset, wanted = integer(options[at + 1]), integer(options[at + 2])
            count, at = (None if wanted < 0 else wanted), at + 3
        else:
            raise Refusal(SYNTAX)
    return offset, count, scores


def spread(pairs: Sequence[tuple[float, bytes]], scores: bool) -> list[bytes]:
    """Members of a sorted set as a reply."""
    if not scores:
        return [member for _, member in pairs]
    return [word for value, member in pairs for word in (member, score_text(value))]
