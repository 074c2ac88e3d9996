"""Texts that take over a terminal which prints them raw, and a look at what was printed."""

from __future__ import annotations

import unicodedata

HOSTILE = "a\x1b[31m\x1b]0;title\x07\x1b[2Jb\nfalse  line\r\tc\x7f\x9b1m\u202ed\u2028e\u2066f"
"""Colour, window title, clear screen, line breaks, tab, DEL, C1, and marks of direction."""

STORABLE = HOSTILE + "\0"
"""The same with a NUL, which cannot stand on a command line."""


def steers(printed: bytes | str) -> list[str]:
    """The characters of an output that do more than say something; line breaks may end lines."""
    text = printed.decode() if isinstance(printed, bytes) else printed
    return [
        repr(c)
        for c in text
        if c != "\n"
        and (
            unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs")
            or unicodedata.bidirectional(c) in MARKS
        )
    ]


MARKS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def false_lines(printed: str) -> list[str]:
    """Lines that begin with what a hostile text put behind its line break."""
    return [line for line in printed.splitlines() if line.startswith("false  line")]
