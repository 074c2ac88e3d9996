"""What every policy's module declares."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from rqueue.protocol.lua_folder import find_lua
from rqueue.protocol.script_header import parse_policy


class Policy(NamedTuple):
    """One policy of queues, the Python half of `lua/policies/<name>.lua`.

    revision: grows when what it stores is stored otherwise. options: its fields of `meta` that
    people set -> the least and the greatest value. names: its fields of `meta` that are names of
    queues. requires: policies that a kind with it has too.
    """

    name: str
    revision: int = 1
    options: tuple[tuple[str, int, int], ...] = ()
    names: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The policy in a queue's stamp."""
        return self.name if self.revision == 1 else f"{self.name}.{self.revision}"

    @property
    def excludes(self) -> tuple[str, ...]:
        """Policies that cannot be in a kind with it. Raises `ScriptSourceError` where there is no
        Lua half."""
        return _excluded_by(self.name)


@cache
def _excluded_by(policy: str) -> tuple[str, ...]:
    # The Lua half says it; its scripts are about to be composed anyway.
    file = f"policies/{policy}.lua"
    text = find_lua().joinpath(*file.split("/")).read_text(encoding="utf-8")
    return parse_policy(text, f"lua/{file}", policy).excludes
