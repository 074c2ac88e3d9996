"""The functions that a script is composed of, as fields of one table.

A function of Lua has 200 local variables at the most, and uses 60 of those around it. A plain
queue's scripts stay far below that. Those of a kind with many policies need not, however many there
are: where many functions of includes and policies are in one block, they are fields of a table
there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

FUNCTION = re.compile(r"local function ([a-z]+_\w+)\(")
"""How a function of an include begins, at the start of a line. Names of one word are few, and look
like those of variables."""

_WORD = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--.*|(?<![\w:])([a-z]+_\w+)""")
"""A text, a comment, or a name as functions have them (the group)."""
_DECLARED = {
    "local ": re.compile(r"\blocal (?!function\b)([\w, ]+)"),
    "function": re.compile(r"\bfunction\b[^(\n]*\(([^)\n]*)\)"),
    "for ": re.compile(r"\bfor ([\w, ]+?) (?:=|in)(?!\w)"),
}
"""What declares variables, by a word without which it does not: most lines have none of these."""

MANY = 5
"""So many functions of one block are worth a table."""

Origin = tuple[str, int]


@dataclass
class Scope:
    """A script, a step or a block within one: the numbers of its first and its last line, and of
    those at which the functions begin that its includes define in it."""

    script: str
    number: int
    first: int
    last: int = -1
    functions: dict[int, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The variable that has its functions."""
        return f"{self.script.upper()}_PARTS_{self.number}"


def gathered(
    lines: Sequence[str], origins: Sequence[Origin], scopes: Sequence[Scope]
) -> tuple[list[str], list[Origin]]:
    """The lines with these functions as fields of tables, and where each line came from.

    A name that a variable has somewhere stays that of a local function: which of the two is meant
    depends on where it stands.
    """
    variables = set[str]().union(*map(_variables, {*lines}))
    made: list[str] = []
    sources: list[Origin] = []
    many = [scope for scope in scopes if len(scope.functions) >= MANY]
    starting = {first: [*some] for first, some in groupby(many, lambda scope: scope.first)}
    outermost = Scope("", 0, 0, len(lines))
    around: list[tuple[Scope, dict[str, str]]] = [(outermost, {})]
    copied = 0
    for number, names in enumerate(map(_names, lines)):
        if not names and number not in starting:
            continue
        made += lines[copied:number]
        sources += origins[copied:number]
        copied, line, source = number + 1, lines[number], origins[number]
        while number > around[-1][0].last:
            around.pop()
        for scope in starting.get(number, ()):
            # what is within knows what stands before it
            around.append((scope, {**around[-1][1]}))
        scope, written = around[-1]
        own = scope.functions.get(number)
        if own is not None and own not in variables:
            if scope.table not in written:
                made.append(f"local {scope.table} = {{}}")
                sources.append(source)
                written[scope.table] = scope.table
            written[own] = f"{scope.table}.{own}"
            line = line.removeprefix("local ")
            names = _names(line)
        for start, end, name in names:
            if name in written:
                line = f"{line[:start]}{written[name]}{line[end:]}"
        made.append(line)
        sources.append(source)
    made += lines[copied:]
    sources += origins[copied:]
    return made, sources


@cache
def _variables(line: str) -> tuple[str, ...]:
    """Names of local variables and parameters."""
    forms = (form for word, form in _DECLARED.items() if word in line)
    found = (names for form in forms for names in form.findall(line))
    return tuple(name.strip() for names in found for name in names.split(","))


@cache
def _names(line: str) -> tuple[tuple[int, int, str], ...]:
    """Where in a line a name may be that of a function, the last one first: not where it is that of
    a field, nor in texts."""
    if "_" not in line:
        return ()
    places = []
    for found in _WORD.finditer(line):
        before, after = line[: found.start()], line[found.end() :].lstrip()
        is_field = before.endswith(".") and not before.endswith("..")
        is_key = after.startswith("=") and not after.startswith("==")
        if found[1] and not is_field and not is_key:
            places.append((found.start(), found.end(), found[1]))
    return tuple(reversed(places))
