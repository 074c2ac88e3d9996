"""Where a page of a listing ended, as text that the next page is asked for with."""

from __future__ import annotations

import base64
import binascii
import re

from rqueue.errors import ConfigError


def fold(*parts: str) -> str:
    """A cursor of these parts; only the last one, a member, may hold NULs."""
    raw = "\0".join(parts).encode("utf-8", "surrogateescape")
    return base64.urlsafe_b64encode(raw).decode()


def unfold(cursor: str, parts: int) -> list[str]:
    """The parts of a cursor that `check_cursor` let pass."""
    raw = base64.urlsafe_b64decode(cursor.encode())
    return raw.decode("utf-8", "surrogateescape").split("\0", parts - 1)


_PLACE = r"(\d+[dr](\d+\.\d+(@\d*)?|-)|o\d+\.\d+(\.\w+)?|b\d+\.[\w%@=-]+|l\d+\.\d+\.\d\.[\w%-]*)"
_READY_CURSOR = re.compile(rf"{_PLACE}(,{_PLACE})*")
_BLOCKED_CURSOR = re.compile(r"only,b\d+\.[\w%@=-]+")
_FOLDED_CURSORS = {
    "scheduled": re.compile(r"[-+.\de]+\0.+", re.DOTALL),
    "dead": re.compile(r"[-+.\de]+\0.+", re.DOTALL),
    "held": re.compile(r"[^\0]+\0(-inf|[-+.\de]+)\0.*", re.DOTALL),
}
_HASH_CURSOR = re.compile(r"[01]\0\d+")


def check_cursor(state: str, cursor: str) -> None:
    """Refuse what no page of such a listing ended with. Raises ConfigError."""
    if state == "ready":
        good = _READY_CURSOR.fullmatch(cursor)
    elif state == "blocked":
        good = _BLOCKED_CURSOR.fullmatch(cursor)
    else:
        try:
            raw = base64.urlsafe_b64decode(cursor.encode()).decode("utf-8", "surrogateescape")
        except (binascii.Error, ValueError):
            raw = ""
        good = _FOLDED_CURSORS.get(state, _HASH_CURSOR).fullmatch(raw)
    if good is None:
        raise ConfigError(
            "after", f"{cursor!r} is no cursor of {state} jobs: pass what ended the page before"
        )
