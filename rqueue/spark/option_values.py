"""Values of options, from their texts. What does not read raises ValueError or ConfigError."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from rqueue.model.names import check_namespace, check_queue
from rqueue.model.times import parse_duration

EVERY: tuple[str, ...] = ()
"""Of `queues` and `states`: all there are."""

JOB_STATES = ("ready", "scheduled", "parked", "held", "blocked", "deferred", "dead")
_RUN = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ENTRY = re.compile(r"\d{1,20}(-\d{1,20})?")


def text(text: str) -> str | None:
    """Any text; None where it is empty."""
    return text or None


def flag(text: str) -> bool:
    """`true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def number(least: int, most: int | None = None) -> Callable[[str], int]:
    """A reader of whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        try:
            number = int(text.replace("_", ""))
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number") from None
        if number < least:
            raise ValueError(f"{number} is below {least}")
        if most is not None and number > most:
            raise ValueError(f"{number} is above {most}")
        return number

    return parse


def rate(text: str) -> float | None:
    """Rows a second; None where it is empty."""
    if not text:
        return None
    try:
        rate = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not 0 <= rate < float("inf"):
        raise ValueError(f"{text!r} is not a number of rows per second")
    return rate


def seconds(text: str) -> float:
    """A duration, in seconds."""
    return parse_duration(text)


def entries(text: str) -> tuple[str, ...]:
    """Names between commas; one with a backslash before it belongs to a name."""
    if text.strip() == "*":
        return EVERY
    names = [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", text)]
    return tuple(dict.fromkeys(name for name in names if name))


def queues(text: str) -> tuple[str, ...]:
    """Names of queues between commas, or all."""
    names = entries(text)
    if not names and text.strip() != "*":
        raise ValueError("names no queue; write names with commas between them, or *")
    for name in names:
        check_queue(name)
    return names


def offsets(text: str) -> Mapping[str, str]:
    """Ids of entries by queue, from a JSON object."""
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from None
    if type(found) is not dict:
        raise ValueError(f"{text!r} is no JSON object of queues and ids of entries")
    for queue, entry in found.items():
        check_queue(queue)
        if type(entry) is not str or not _ENTRY.fullmatch(entry):
            raise ValueError(f"{entry!r} of queue '{queue}' is not the id of an entry")
    return found


def run(text: str) -> str | None:
    """The name of a run of a writer; None where it is empty."""
    if text and not _RUN.fullmatch(text):
        raise ValueError(f"{text!r} is not 1 to 100 letters, digits, '.', '_' or '-'")
    return text or None


def queue(text: str) -> str | None:
    """The name of one queue; None where it is empty."""
    return check_queue(text) if text else None


def states(text: str) -> tuple[str, ...]:
    """States of jobs between commas, or all."""
    states = entries(text)
    if wrong := sorted(set(states) - set(JOB_STATES)):
        raise ValueError(f"{wrong[0]!r} is no state; there are {', '.join(JOB_STATES)}")
    return states


def levels(text: str) -> tuple[int, ...]:
    """Priority levels between commas, or all."""
    return tuple(map(number(0, 9), entries(text)))


def namespace(text: str) -> str | None:
    """What the keys begin with; None where it is empty."""
    return check_namespace(text) if text else None


def moment(text: str) -> str:
    """The id of an entry, from a time or an id; "-" and "+" are the two ends."""
    from datetime import datetime

    if text in ("-", "+", "earliest", "latest"):
        return {"earliest": "-", "latest": "+"}.get(text, text)
    if _ENTRY.fullmatch(text):
        return text
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a time (2030-01-31T08:00:00+00:00), nor ms since the epoch, nor "
            "the id of an entry (1700000000000-0)"
        ) from None
    if time.tzinfo is None:
        raise ValueError(f"{text!r} says no time zone; write {text}Z for UTC, or {text}+02:00")
    return str(round(time.timestamp() * 1000))


def one_of(*words: str) -> Callable[[str], str]:
    """A reader of one of these words, in whatever case."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"{text!r} is not one of {', '.join(words)}")
        return text.lower()

    return parse
