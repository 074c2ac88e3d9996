"""The queue's Lua scripts: found, expanded and checked.

A script is a file `lua/<name>.lua`; the comment block at its top is its contract (`Header`). What
is sent is composed of it, its includes and the policies of a kind of queue (`script_expansion`).
`lua/README.md` describes the format.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from rqueue.errors import ScriptSourceError
from rqueue.model.locks import new_lock
from rqueue.protocol.lua_folder import find_lua
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.protocol.script_expansion import Expansion
from rqueue.protocol.script_header import SLOT, Header, PolicyHeader, parse_header, parse_policy

_LUA_LINE = re.compile(r"user_script:(\d+)")
DRAGONFLY = "--!df flags=allow-undeclared-keys"
"""The first line of what is sent: Dragonfly then lets a script touch keys that it derives from the
declared ones. To all other servers it is a comment."""


@dataclass(frozen=True, slots=True)
class Script:
    """One script, ready to be sent: `source` is expanded, `sha` (SHA-1) is its name in Redis."""

    name: str
    source: str
    sha: str
    header: Header
    origins: tuple[tuple[str, int], ...]
    """For each line of `source`: the file it came from and its line number there."""
    composed: bool = False
    """Whether it is another one for queues of another kind."""
    asks: frozenset[str] = frozenset()
    """Hooks of policies that it asks."""

    def locate(self, message: str) -> str | None:
        """Translate the `user_script:<line>` of a Redis error into `<file>:<line>`, if there."""
        found = _LUA_LINE.search(message)
        if found is None or not 1 <= int(found[1]) <= len(self.origins):
            return None
        file, line = self.origins[int(found[1]) - 1]
        return f"{file}:{line}"


class Scripts:
    """The scripts of one folder, each read, expanded for a kind of queue and checked when it is
    first asked for."""

    def __init__(self, root: Traversable | None = None) -> None:
        self._root = root
        self.loaded: dict[tuple[str, Kind], Script] = {}
        """What was asked for before."""
        self.plain: dict[str, Script] = {}
        """Of these what plain queues are sent, by name."""
        self._policies: dict[str, PolicyHeader] = {}
        self._policy_names: tuple[str, ...] | None = None
        self._texts: dict[str, str | None] = {}
        self._lock = new_lock()

    @property
    def root(self) -> Traversable:
        """The folder of the sources; `find_lua()` unless one was given."""
        if self._root is None:
            self._root = find_lua()
        return self._root

    def names(self) -> tuple[str, ...]:
        """Names of all scripts, sorted. Raises `ScriptSourceError` if there is not one."""
        if not (found := self._names_in(self.root)):
            raise ScriptSourceError(f"no Lua scripts in {self.root}")
        return found

    def policies(self) -> tuple[str, ...]:
        """Names of all policies, sorted."""
        if self._policy_names is None:
            folder = self.root / "policies"
            self._policy_names = self._names_in(folder) if folder.is_dir() else ()
        return self._policy_names

    @staticmethod
    def _names_in(folder: Traversable) -> tuple[str, ...]:
        files_ = (entry for entry in folder.iterdir() if entry.is_file())
        return tuple(sorted(e.name.removesuffix(".lua") for e in files_ if e.name.endswith(".lua")))

    def policy(self, name: str) -> PolicyHeader:
        """What a policy says about itself; `ScriptSourceError` if it is unknown or broken."""
        if name in self._policies:
            return self._policies[name]
        path = f"policies/{name}.lua"
        text = self._read(path) if SLOT.fullmatch(name) else None
        if text is None:
            known = ", ".join(self.policies()) or "none"
            raise ScriptSourceError(f"no policy {name!r} in {self.root}; there are: {known}")
        header = self._policies[name] = parse_policy(text, f"lua/{path}", name)
        return header

    def script(self, name: str, kind: Kind = PLAIN) -> Script:
        """Return the script called `name` for queues of this kind; `ScriptSourceError` if it is
        unknown or broken."""
        script = self.loaded.get((name, kind))
        if script is None:
            with self._lock:
                script = self.loaded.get((name, kind))
                if script is None:
                    script = self.loaded[name, kind] = self._load(name, kind)
                    if kind == PLAIN:
                        self.plain[name] = script
        return script

    def _load(self, name: str, kind: Kind) -> Script:
        file = f"lua/{name}.lua"
        text = self._read(f"{name}.lua") if SLOT.fullmatch(name) else None
        if text is None:
            raise ScriptSourceError(
                f"no script {name!r} in {self.root}; there are: {', '.join(self.names())}"
            )
        header = parse_header(text, file)
        there = self.policies()
        policies = [self.policy(its) for its in kind.policies if there or kind != PLAIN]
        policies.sort(key=lambda policy: policy.order)
        expansion = Expansion(
            self._read, policies, kind.stamp, DRAGONFLY, file, plain=kind == PLAIN
        )
        expansion.expand(text, file)
        source = "\n".join(expansion.lines) + "\n"
        sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        return Script(
            name,
            source,
            sha,
            header,
            tuple(expansion.origins),
            expansion.composed,
            frozenset(expansion.asked),
        )

    def _read(self, path: str) -> str | None:
        if path not in self._texts:
            file = self.root.joinpath(*path.split("/"))
            self._texts[path] = file.read_text(encoding="utf-8") if file.is_file() else None
        return self._texts[path]


SCRIPTS = Scripts()
"""The scripts that rqueue itself ships."""


def script(name: str, kind: Kind = PLAIN) -> Script:
    """Return the shipped script called `name` for queues of this kind. Raises `ScriptSourceError`
    if there is none."""
    return SCRIPTS.script(name, kind)
