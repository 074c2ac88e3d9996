"""The comment block at the top of a script or a policy: its contract, read into names.

`lua/README.md` describes the format; `tests/lua/test_contract.py` holds it against the bodies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rqueue.errors import ScriptSourceError

DIRECTIVE = re.compile(r"\s*--+\s*@(?:include|each|one|hooks|if|fast|end|stamp|joins|step)\b")
"""A line that the loader replaces, or tries to."""
SLOT = re.compile(r"[a-z][a-z0-9_]*")

_SECTION = re.compile(r"--- ([A-Z][A-Z_]*):\s*(.*)")
_CONTINUATION = re.compile(r"---\s{2,}(\S.*)")
_NOTE = re.compile(r"\([^()]*\)")

_SECTIONS = ("KEYS", "ARGV", "REPLY", "ERRORS")
_POLICY_SECTIONS = (
    *("HOOKS", "META", "JOB", "KEYS", "STORE", "ORDER", "FAST", "STRUCTURE", "EXCLUDES"),
)

HOOKS = {
    "defaults": "each",
    "admit": "each",
    "instead": "each",
    "replace": "each",
    "owned": "each",
    "parents": "each",
    "defers": "each",
    "displace": "each",
    "trim": "each",
    "fit": "each",
    "entered": "each",
    "weigh": "each",
    "weight": "each",
    "ripe": "each",
    "ripen": "each",
    "refers": "each",
    "addressed": "each",
    "depth": "each",
    "grown": "each",
    "shelf": "each",
    "strand": "each",
    "deal": "each",
    "undeal": "each",
    "refund": "each",
    "cleared": "each",
    "fewer": "each",
    "preceding": "each",
    "foremost": "each",
    "apportion": "each",
    "unblock": "each",
    "awaits": "each",
    "tied": "each",
    "seal": "each",
    "retell": "each",
    "heard": "each",
    "deferred": "each",
    "ahead": "each",
    "fixed": "each",
    "member": "each",
    "beside": "each",
    "rank": "one",
    "eligible": "each",
    "busy": "each",
    "marked": "each",
    "claim": "each",
    "pass": "each",
    "heads": "each",
    "expose": "each",
    "stall": "each",
    "found": "each",
    "repair": "each",
    "turn": "each",
    "done": "each",
    "behind": "each",
    "taken": "each",
    "returned": "each",
    "kept": "each",
    "delayed": "each",
    "dropped": "each",
    "left": "each",
    "revived": "each",
    "rival": "each",
    "route": "each",
    "final": "each",
    "named": "each",
    "stays": "each",
    "closed": "each",
    "admits": "each",
    "standby": "each",
    "configured": "each",
    "keeps": "each",
    "sends": "each",
    "joined": "each",
    "gone": "each",
    "crowded": "each",
    "vacated": "each",
    "halted": "each",
    "tabled": "each",
    "informed": "each",
    "lifted": "each",
    "aware": "each",
    "room": "each",
    "counted": "each",
    "recount": "each",
    "ended": "each",
    "overdue": "each",
    "rearms": "each",
    "swept": "each",
    "upkeep": "each",
    "allow": "each",
    "options": "each",
    "places": "each",
    "meets": "each",
    "stands": "each",
    "keys": "each",
    "select": "each",
    "listens": "each",
    "audience": "each",
    "waits": "each",
    "waiters": "each",
    "able": "each",
    "tell": "each",
    "closing": "each",
    "restamp": "each",
    "unheard": "each",
    "bucketed": "each",
    "owner": "each",
    "reset": "each",
    "timed": "each",
    "fires": "each",
    "fire": "each",
    "refill": "each",
    "refuse": "each",
}
"""What a script may ask the policies of a queue's kind, and how many of them answer."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a script says about itself: its purpose, its slots' names, its reply and its errors."""

    purpose: str
    keys: tuple[str, ...]
    argv: tuple[str, ...]
    """Names of the fixed arguments; a variadic rest is not among them, see `rest`."""
    rest: str | None
    """Name of the variadic rest of ARGV, without its dots."""
    reply: str
    errors: str


@dataclass(frozen=True, slots=True)
class PolicyHeader:
    """What a policy says about itself.

    hooks: that it answers. meta, job, keys: the fields of `meta`, the fields of a job's header and
    the keys that are its own. store: where jobs wait, `list` or `set`. order: its place among the
    policies of a kind, in which all hooks are asked. fast: whether the fast paths know all that it
    needs. structure: what a change of kind must rebuild, `none`, `counters` or `places`. excludes:
    policies that cannot be in a kind with it.
    """

    name: str
    purpose: str
    hooks: tuple[str, ...]
    meta: tuple[str, ...]
    job: tuple[str, ...]
    keys: tuple[str, ...]
    store: str
    order: int
    fast: bool
    structure: str
    excludes: tuple[str, ...]


class _Block(NamedTuple):
    """A parsed comment block: section -> its lines, and the number of the line it begins at."""

    purpose: str
    sections: dict[str, list[str]]
    lines: dict[str, int]


def fault(
    file: str, line: int, what: str, stack: Sequence[tuple[str, int]] = ()
) -> ScriptSourceError:
    """The error for what stands in this line; stack: the includes that led there."""
    trail = "".join(f"\n  included from {above}:{at}" for above, at in reversed(stack))
    return ScriptSourceError(f"{file}:{line}: {what}{trail}")


def _parse_block(text: str, file: str, known: tuple[str, ...], what: str) -> _Block:
    purpose: list[str] = []
    sections: dict[str, list[str]] = {}
    lines_of: dict[str, int] = {}
    current: list[str] = purpose
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("---") or DIRECTIVE.match(line):
            break
        if section := _SECTION.fullmatch(line.rstrip()):
            name, rest = section[1], section[2]
            if name not in known:
                raise fault(file, number, f"unknown section {name}; known: {', '.join(known)}")
            if name in sections:
                raise fault(file, number, f"section {name} is there twice")
            if name != (due := known[len(sections)]):
                raise fault(file, number, f"section {name} where {due} is due")
            current = sections[name] = [rest] if rest else []
            lines_of[name] = number
        elif not sections:
            purpose.append(line[3:].strip())
        elif more := _CONTINUATION.fullmatch(line.rstrip()):
            current.append(more[1])
        else:
            raise fault(file, number, "neither a section nor an indented continuation of one")
    if not any(purpose):
        raise fault(file, 1, f"a {what} begins with '--- ' and a sentence that says what it does")
    if len(sections) < len(known):
        raise fault(file, number, f"the header has no section {known[len(sections)]}")
    for name, content in sections.items():
        if not content:
            raise fault(
                file, lines_of[name], f"section {name} is empty; say 'none' if that is meant"
            )
    return _Block(" ".join(purpose).strip(), sections, lines_of)


def _names(lines: Sequence[str]) -> list[str]:
    # The names go on as long as a line ends in a comma; what follows them are notes.
    names = ""
    for line in lines:
        names += f" {_NOTE.sub('', line)}"
        if not names.rstrip().endswith(","):
            break
    return [] if names.strip() == "none" else [slot.strip() for slot in names.split(",")]


@lru_cache(1000)
def parse_header(text: str, file: str) -> Header:
    """Parse the contract at the top of a script.

    Raises `ScriptSourceError` with file and line if a section is missing, repeated, out of order or
    malformed.
    """
    block = _parse_block(text, file, _SECTIONS, "script")
    keys, argv = _names(block.sections["KEYS"]), _names(block.sections["ARGV"])
    rest_name: str | None = None
    if argv and argv[-1].endswith("..."):
        rest_name = argv.pop()[:-3].strip()
    seen: set[str] = set()
    for section_name, names in (
        ("KEYS", keys),
        ("ARGV", [*argv, *([rest_name] if rest_name else [])]),
    ):
        for slot in names:
            at = block.lines[section_name]
            if not SLOT.fullmatch(slot):
                raise fault(file, at, f"{slot!r} cannot be the name of a slot of {section_name}")
            if slot in seen:
                raise fault(file, at, f"two slots are called {slot}")
            seen.add(slot)
    return Header(
        purpose=block.purpose,
        keys=tuple(keys),
        argv=tuple(argv),
        rest=rest_name,
        reply="\n".join(block.sections["REPLY"]),
        errors="\n".join(block.sections["ERRORS"]),
    )


def parse_policy(text: str, file: str, name: str) -> PolicyHeader:
    """Parse the contract at the top of a policy. Raises `ScriptSourceError` as `parse_header`, and
    where a hook or a word is not known."""
    block = _parse_block(text, file, _POLICY_SECTIONS, "policy")

    def word(section: str, known: Sequence[str]) -> str:
        said = " ".join(block.sections[section]).strip()
        if said not in known:
            raise fault(
                file, block.lines[section], f"{section} is one of {', '.join(known)}, not {said!r}"
            )
        return said

    hooks = _names(block.sections["HOOKS"])
    for hook in hooks:
        if hook not in HOOKS:
            raise fault(file, block.lines["HOOKS"], f"no hook {hook!r}; hooks: {', '.join(HOOKS)}")
    order = " ".join(block.sections["ORDER"]).strip()
    if not order.isdecimal():
        raise fault(file, block.lines["ORDER"], f"ORDER is a number, not {order!r}")
    return PolicyHeader(
        name=name,
        purpose=block.purpose,
        hooks=tuple(hooks),
        meta=tuple(_names(block.sections["META"])),
        job=tuple(_names(block.sections["JOB"])),
        keys=tuple(_names(block.sections["KEYS"])),
        store=word("STORE", ("list", "set")),
        order=int(order),
        fast=word("FAST", ("yes", "no")) == "yes",
        structure=word("STRUCTURE", ("none", "counters", "places")),
        excludes=tuple(_names(block.sections["EXCLUDES"])),
    )
