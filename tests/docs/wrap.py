"""Wraps the lines of Markdown: `python -m tests.docs.wrap docs/*.md README.md`.

Only paragraphs and list items that have a line beyond the limit are filled anew. Tables, code,
headings and comments stay as they are; spans of code and links are not broken.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LIMIT = 120
ATOM = re.compile(r"(?:`+[^`]*`+|!?\[[^\]]*\]\([^)]*\)|\S)+")
"""A word; code and a link's words and address are part of the word they stand in."""
ITEM = re.compile(r" *(?:[-*+]|\d+[.)]) +")
APART = re.compile(r" {0,3}(?:#|\||>|<!--|!\[|---)")
"""Lines that are no text to fill: headings, tables, quotations, comments, pictures, rules."""
FENCE = re.compile(r" *(?:```|~~~)")


def blocks(text: str) -> Iterator[tuple[bool, list[str]]]:
    """The lines in order, in blocks: (whether it is text that may be filled anew, its lines)."""
    block: list[str] = []
    fenced = False
    for line in text.splitlines():
        fence = FENCE.match(line) is not None
        if fenced or fence or not line.strip() or APART.match(line):
            if block:
                yield True, block
                block = []
            fenced ^= fence
            yield False, [line]
        else:
            if block and ITEM.match(line):
                yield True, block
                block = []
            block.append(line)
    if block:
        yield True, block


def fill(lines: list[str], limit: int = LIMIT) -> list[str]:
    """One paragraph or list item in lines of at most so many characters."""
    found = ITEM.match(lines[0])
    first = found[0] if found else re.match(" *", lines[0])[0]  # type: ignore[index]
    indent = " " * len(first)
    text = " ".join([lines[0][len(first) :], *(line.strip() for line in lines[1:])])
    filled, line = [], first
    empty = True
    for word in ATOM.findall(text):
        # a line must not begin with what would be an item or a heading there
        opens = ITEM.match(word + " ") or APART.match(word)
        if not empty and len(line) + 1 + len(word) > limit and not opens:
            filled.append(line)
            line, empty = indent, True
        line += word if empty else " " + word
        empty = False
    return [*filled, line]


def wrap(text: str, limit: int = LIMIT) -> str:
    """A page without a line that is too long."""
    lines: list[str] = []
    for prose, block in blocks(text):
        long = prose and any(len(line) > limit for line in block)
        lines += fill(block, limit) if long else block
    return "\n".join(lines) + "\n"


def too_long(text: str, limit: int = LIMIT) -> list[str]:
    """The lines of prose that are longer, but for those that are one word."""
    return [
        line
        for prose, block in blocks(text)
        if prose
        for line in block
        if len(line) > limit and len(ATOM.findall(line)) > 1
    ]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(wrap(path.read_text(encoding="utf-8")), encoding="utf-8")
