r"""Text that is safe to print: what comes from jobs and from Redis shall steer no terminal or log.

Control characters (C0, DEL, C1) move cursors, set titles and clear screens, line breaks make lines
that nobody wrote, and marks of direction show a text in another order than it has. They are refused
in names and ids (`rqueue.model.names`), and wherever a text is printed they stand as Python would
write them in a literal: `\x1b`, `\n`, `\u202e`. Letters of all languages stay as they are.
"""

from __future__ import annotations

import re

__all__ = ["escaped", "escaped_json", "escaped_lines", "shown", "steering"]

# C0, DEL and C1; marks of direction; line and paragraph separators; invisible format characters;
# lone surrogates; tags
_STEERING = (
    "\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_ANY = re.compile(f"[{_STEERING}]")
_BUT_LINES = re.compile(f"(?!\n)[{_STEERING}]")


def steering(text: str) -> str:
    """The first character of `text` that steers a terminal rather than says something, or ""."""
    if text.isprintable():
        return ""
    found = _ANY.search(text)
    return found[0] if found else ""


def escaped(text: str) -> str:
    """`text` on one line, fit for a terminal or a log."""
    return text if text.isprintable() else _ANY.sub(_literal, text)


def escaped_lines(text: str) -> str:
    """`text`, fit for a terminal or a log, its lines kept: for tracebacks."""
    return text if text.isprintable() else _BUT_LINES.sub(_literal, text)


def escaped_json(document: bytes) -> bytes:
    """A JSON document that holds the same values and nothing that steers a terminal.

    JSON itself asks for an escape of C0 only. Line breaks between its values stay.
    """
    text = document.decode()
    return document if text.isprintable() else _BUT_LINES.sub(_json_literal, text).encode()


def shown(value: object) -> str:
    """A value as an error message quotes it: its repr, at most 80 characters."""
    text = escaped(repr(value))
    return text if len(text) <= 80 else text[:77] + "..."


def _literal(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def _json_literal(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
