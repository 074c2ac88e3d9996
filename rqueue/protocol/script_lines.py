"""The lines of a Lua source, as composing a script sees them: each is read once, however many
scripts and kinds of queues it becomes part of.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from rqueue.protocol.script_header import DIRECTIVE
from rqueue.protocol.script_parts import FUNCTION

__all__ = ["MALFORMED", "Line", "Run", "runs_of"]

MALFORMED = "malformed"

_WORDS = {
    "include": re.compile(r'(\s*)--- @include "([a-z][a-z0-9_]*(?:/[a-z][a-z0-9_]*)*)"\s*'),
    "each": re.compile(r"(\s*)--- @each (?:([a-z_][\w.]*) = )?([a-z]+)\((.*)\)\s*"),
    "one": re.compile(r"(\s*)--- @one ([a-z]+)\s*"),
    "hooks": re.compile(r"(\s*)--- @hooks ([a-z]+)\s*"),
    "if": re.compile(r"\s*--- @if ([a-z]+)\s*"),
    "fast": re.compile(r"\s*--- @fast\s*"),
    "end": re.compile(r"\s*--- @end\s*"),
    "stamp": re.compile(r"\s*--- @stamp\s*"),
    "step": re.compile(r'--- @step "([a-z][a-z0-9_]*)"\s*'),
    "joins": re.compile(r"(\s*)--- @joins\s*"),
}


class Line(NamedTuple):
    """One line. word: which directive it is, "" for none, MALFORMED for one that cannot be read;
    said: what stands in the directive. within: how far it is indented; an empty line belongs to
    whatever is around it. code: whether Redis has to have it. function: that begins here."""

    number: int
    text: str
    within: int
    word: str
    said: tuple[str, ...]
    code: bool
    function: str


class Run(NamedTuple):
    """Lines without a directive, one behind the other: most lines are of runs, which are put down
    as a whole. texts, origins: all of them, and where they stand; code, code_origins: what Redis
    has to have; functions: those that begin in it, by which line of that. within: how far the line
    is indented that is indented least."""

    lines: tuple[Line, ...]
    texts: list[str]
    origins: list[tuple[str, int]]
    code: list[str]
    code_origins: list[tuple[str, int]]
    functions: dict[int, str]
    within: int


@lru_cache(1000)
def runs_of(text: str, file: str) -> tuple[Line | Run, ...]:
    """The runs of a source and the lines between them, numbered from 1."""
    lines = (_line(number, line) for number, line in enumerate(text.splitlines(), 1))
    found: list[Line | Run] = []
    for plain, some in groupby(lines, lambda line: not line.word):
        if plain:
            found.append(_run(tuple(some), file))
        else:
            found += some
    return tuple(found)


def _run(lines: tuple[Line, ...], file: str) -> Run:
    code = [line for line in lines if line.code]
    return Run(
        lines,
        [line.text for line in lines],
        [(file, line.number) for line in lines],
        [line.text for line in code],
        [(file, line.number) for line in code],
        {at: line.function for at, line in enumerate(code) if line.function},
        min(line.within for line in lines),
    )


def _line(number: int, text: str) -> Line:
    stripped = text.lstrip()
    within = len(text) - len(stripped) if stripped else sys.maxsize
    if not DIRECTIVE.match(text):
        code = stripped != "" and not stripped.startswith("--")
        function = FUNCTION.match(text)
        return Line(number, text, within, "", (), code, function[1] if function else "")
    for word, form in _WORDS.items():
        if found := form.fullmatch(text):
            return Line(number, text, within, word, found.groups(""), False, "")
    return Line(number, text, within, MALFORMED, (), False, "")
