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
    made, sources = [*lines], [*origins]
    waiting = [scope for scope in reversed(scopes) if len(scope.functions) >= MANY]
    functions = {name for scope in waiting for name in scope.functions.values()}
    functions.difference_update(*map(_variables, {*lines}))
    around: list[tuple[Scope, dict[str, str]]] = [(Scope("", 0, 0, len(lines)), {})]
    tables: list[tuple[int, str]] = []
    for number, known in enumerate(map(_known, lines)):
        if functions.isdisjoint(known):
            continue
        while waiting and waiting[-1].first <= number:
            scope = waiting.pop()
            while scope.first > around[-1][0].last:
                around.pop()
            # what is within knows what stands before it
            around.append((scope, {**around[-1][1]}))
        while number > around[-1][0].last:
            around.pop()
        scope, written = around[-1]
        line = lines[number]
        own = scope.functions.get(number)
        if own in functions:
            table = scope.table
            if table not in written:
                tables.append((number, table))
                written[table] = table
            written[own] = f"{table}.{own}"
            line = line.removeprefix("local ")
        for start, end, name in _names(line):
            if name in written:
                line = f"{line[:start]}{written[name]}{line[end:]}"
        made[number] = line
    for number, table in reversed(tables):
        made.insert(number, f"local {table} = {{}}")
        sources.insert(number, origins[number])
    return made, sources


@cache
def _variables(line: str) -> tuple[str, ...]:
    """Names of local variables and parameters."""
    forms = (form for word, form in _DECLARED.items() if word in line)
    found = (names for form in forms for names in form.findall(line))
    return tuple(name.strip() for names in found for name in names.split(","))


@cache
def _known(line: str) -> frozenset[str]:
    """The names of a line that may be those of functions."""
    return frozenset(name for _, _, name in _names(line))


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
