"""The queue's Lua scripts: found, expanded and checked.

A script is a file `lua/<name>.lua`. Lines `--- @include "noun/name"` are replaced by
`lua/include/<noun>/<name>.lua`, each file once; an indented one belongs to the function it stands
in. The comment block at its top is its contract (`Header`).
`lua/README.md` describes the format.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from rqueue.errors import ScriptSourceError

_INCLUDE = re.compile(r'(\s*)--- @include "([a-z][a-z0-9_]*(?:/[a-z][a-z0-9_]*)*)"\s*')
_INCLUDE_ATTEMPT = re.compile(r"\s*--+\s*@include\b")
_SECTION = re.compile(r"--- ([A-Z][A-Z_]*):\s*(.*)")
_CONTINUATION = re.compile(r"---\s{2,}(\S.*)")
_SLOT = re.compile(r"[a-z][a-z0-9_]*")
_NOTE = re.compile(r"\([^()]*\)")
_LUA_LINE = re.compile(r"user_script:(\d+)")
DRAGONFLY = "--!df flags=allow-undeclared-keys"
"""The first line of what is sent: Dragonfly then lets a script touch keys that it derives from the
declared ones. To all other servers it is a comment."""

_SECTIONS = ("KEYS", "ARGV", "REPLY", "ERRORS")


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
class Script:
    """One script, ready to be sent: `source` is expanded, `sha` (SHA-1) is its name in Redis."""

    name: str
    source: str
    sha: str
    header: Header
    origins: tuple[tuple[str, int], ...]
    """For each line of `source`: the file it came from and its line number there."""

    def locate(self, message: str) -> str | None:
        """Translate the `user_script:<line>` of a Redis error into `<file>:<line>`, if there."""
        found = _LUA_LINE.search(message)
        if found is None or not 1 <= int(found[1]) <= len(self.origins):
            return None
        file, line = self.origins[int(found[1]) - 1]
        return f"{file}:{line}"


def find_lua() -> Traversable:
    """Return the folder of Lua sources.

    A wheel (unpacked or zipped) carries it inside the package. A checkout, imported in place or
    through an editable install, has it beside the package; the copy that an editable install leaves
    in site-packages is not part of the package that was imported and is not looked at, so an edit
    takes effect.

    Raises `ScriptSourceError` if neither is there.
    """
    package = files("rqueue")
    inside = package / "lua"
    if inside.is_dir():
        return inside
    # Only a checkout counts: beside an installed package, a folder `lua` would be somebody else's.
    beside = Path(__file__).resolve().parents[2]
    if (beside / "lua").is_dir() and (beside / "pyproject.toml").is_file():
        return beside / "lua"
    raise ScriptSourceError(
        f"rqueue's Lua scripts are missing: there is neither {inside} "
        f"nor, in a checkout, {beside / 'lua'}; reinstall rqueue"
    )


def parse_header(text: str, file: str) -> Header:
    """Parse the contract at the top of a script.

    Raises `ScriptSourceError` with file and line if a section is missing, repeated, out of order or
    malformed.
    """
    purpose: list[str] = []
    sections: dict[str, list[str]] = {}
    lines_of: dict[str, int] = {}
    current: list[str] = purpose
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("---") or _INCLUDE_ATTEMPT.match(line):
            break
        if section := _SECTION.fullmatch(line.rstrip()):
            name, rest = section[1], section[2]
            if name not in _SECTIONS:
                raise _fault(file, number, f"unknown section {name}; known: {', '.join(_SECTIONS)}")
            if name in sections:
                raise _fault(file, number, f"section {name} is there twice")
            if name != (due := _SECTIONS[len(sections)]):
                raise _fault(file, number, f"section {name} where {due} is due")
            current = sections[name] = [rest] if rest else []
            lines_of[name] = number
        elif not sections:
            purpose.append(line[3:].strip())
        elif more := _CONTINUATION.fullmatch(line.rstrip()):
            current.append(more[1])
        else:
            raise _fault(file, number, "neither a section nor an indented continuation of one")
    if not any(purpose):
        raise _fault(file, 1, "a script begins with '--- ' and a sentence that says what it does")
    if len(sections) < len(_SECTIONS):
        raise _fault(file, number, f"the header has no section {_SECTIONS[len(sections)]}")
    for name, content in sections.items():
        if not content:
            raise _fault(
                file, lines_of[name], f"section {name} is empty; say 'none' if that is meant"
            )

    def slots(name: str) -> list[str]:
        # The names go on as long as a line ends in a comma; what follows them are notes.
        names = ""
        for line in sections[name]:
            names += f" {_NOTE.sub('', line)}"
            if not names.rstrip().endswith(","):
                break
        return [] if names.strip() == "none" else [slot.strip() for slot in names.split(",")]

    keys, argv = slots("KEYS"), slots("ARGV")
    rest_name: str | None = None
    if argv and argv[-1].endswith("..."):
        rest_name = argv.pop()[:-3].strip()
    seen: set[str] = set()
    for section_name, names in (
        ("KEYS", keys),
        ("ARGV", [*argv, *([rest_name] if rest_name else [])]),
    ):
        for slot in names:
            if not _SLOT.fullmatch(slot):
                raise _fault(
                    file,
                    lines_of[section_name],
                    f"{slot!r} cannot be the name of a slot of {section_name}",
                )
            if slot in seen:
                raise _fault(file, lines_of[section_name], f"two slots are called {slot}")
            seen.add(slot)
    return Header(
        purpose=" ".join(purpose).strip(),
        keys=tuple(keys),
        argv=tuple(argv),
        rest=rest_name,
        reply="\n".join(sections["REPLY"]),
        errors="\n".join(sections["ERRORS"]),
    )


def _fault(
    file: str, line: int, what: str, stack: Sequence[tuple[str, int]] = ()
) -> ScriptSourceError:
    trail = "".join(f"\n  included from {above}:{at}" for above, at in reversed(stack))
    return ScriptSourceError(f"{file}:{line}: {what}{trail}")


class Scripts:
    """The scripts of one folder, each read, expanded and checked when it is first asked for."""

    def __init__(self, root: Traversable | None = None) -> None:
        self._root = root
        self._loaded: dict[str, Script] = {}
        self._lock = threading.Lock()

    @property
    def root(self) -> Traversable:
        """The folder of the sources; `find_lua()` unless one was given."""
        if self._root is None:
            self._root = find_lua()
        return self._root

    def names(self) -> tuple[str, ...]:
        """Names of all scripts, sorted. Raises `ScriptSourceError` if there is not one."""
        found = sorted(
            entry.name.removesuffix(".lua")
            for entry in self.root.iterdir()
            if entry.name.endswith(".lua") and entry.is_file()
        )
        if not found:
            raise ScriptSourceError(f"no Lua scripts in {self.root}")
        return tuple(found)

    def script(self, name: str) -> Script:
        """Return the script called `name`; `ScriptSourceError` if it is unknown or broken."""
        script = self._loaded.get(name)
        if script is None:
            with self._lock:
                script = self._loaded.get(name)
                if script is None:
                    script = self._loaded[name] = self._load(name)
        return script

    def _load(self, name: str) -> Script:
        file = f"lua/{name}.lua"
        text = self._read(self.root / f"{name}.lua") if _SLOT.fullmatch(name) else None
        if text is None:
            raise ScriptSourceError(
                f"no script {name!r} in {self.root}; there are: {', '.join(self.names())}"
            )
        header = parse_header(text, file)
        lines = [DRAGONFLY]
        origins = [(file, 1)]
        self._expand(text, file, (), set(), lines, origins)
        source = "\n".join(lines) + "\n"
        sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        return Script(name, source, sha, header, tuple(origins))

    def _expand(
        self,
        text: str,
        file: str,
        stack: tuple[tuple[str, int], ...],
        done: set[str],
        lines: list[str],
        origins: list[tuple[str, int]],
    ) -> None:
        # Depth first and in place: what an include needs stands before it, whoever asked first.
        # What indented ones define is known to the block they open, and not outside.
        block: set[str] | None = None
        for number, line in enumerate(text.splitlines(), 1):
            if not _INCLUDE_ATTEMPT.match(line):
                block = None
                lines.append(line)
                origins.append((file, number))
                continue
            wanted = _INCLUDE.fullmatch(line)
            if wanted is None:
                raise _fault(file, number, 'malformed include; write: --- @include "name"', stack)
            within, name = wanted.groups()
            target = f"lua/include/{name}.lua"
            trail = [above for above, _ in stack] + [file]
            if target in trail:
                circle = " -> ".join([*trail[trail.index(target) :], target])
                raise _fault(file, number, f"circular include: {circle}", stack)
            if not within:
                block = None
            elif block is None:
                block = set(done)
            known = done if block is None else block
            if target in known:
                continue
            included = self._read(self.root / "include" / f"{name}.lua")
            if included is None:
                raise _fault(file, number, f'no include "{name}": {target} is not there', stack)
            self._expand(included, target, (*stack, (file, number)), known, lines, origins)
            known.add(target)

    @staticmethod
    def _read(path: Traversable) -> str | None:
        return path.read_text(encoding="utf-8") if path.is_file() else None


SCRIPTS = Scripts()
"""The scripts that rqueue itself ships."""


def script(name: str) -> Script:
    """Return the shipped script called `name`. Raises `ScriptSourceError` if there is none."""
    return SCRIPTS.script(name)
