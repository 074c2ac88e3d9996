"""The queue's scripts, run in this process: Lua 5.1, as in Redis, with what Redis gives them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from rqueue.errors import ConfigError
from rqueue.model.locks import new_lock
from rqueue.transport.memory.all_commands import COMMANDS
from rqueue.transport.memory.keyspace import Keyspace, Refusal, Status, Unsupported

__all__ = ["LuaEngine", "engine"]

VALUE, STATUS, RAISED = 0, 1, 2
"""What a script ended with; anything else is an error that it returned."""
EXACT = 10**17
"""Whole numbers below it are written out by Redis."""

NOT_TEXT = "ERR Lua redis lib command arguments must be strings or integers"


class LuaEngine:
    """Lua, and the scripts that it compiled, for all servers of this process: to begin anew for
    each test would cost more than the test. One script runs at a time."""

    def __init__(self) -> None:
        try:
            from lupa import lua51
        except ImportError as error:
            raise ConfigError(
                "memory", "a server in memory needs Lua: pip install 'rqueue[testing]'"
            ) from error
        self.lock = new_lock()
        self._db = Keyspace()
        self._missing: Unsupported | None = None
        self._scripts: dict[str, Any] = {}
        self._lua = lua51.LuaRuntime(
            encoding=None,
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
        )
        self._table = self._lua.table_from
        self._is_table = lua51.lua_type
        source = files("rqueue.transport.memory").joinpath("redis_api.lua").read_bytes()
        load = self._lua.eval(b"function(text) return assert(loadstring(text, '@redis_api')) end")
        self._compile, self._run = load(source)(self._call, _sha1hex)

    def compile(self, sha: str, source: bytes) -> None:
        """Make a script ready to run under its name. Refuses one that is no Lua."""
        if sha in self._scripts:
            return
        made = self._compile(source)
        if isinstance(made, tuple):
            said = made[1].decode(errors="replace")
            raise Refusal(f"ERR Error compiling script (new function): {said}")
        self._scripts[sha] = made

    def run(self, db: Keyspace, sha: str, keys: Sequence[bytes], args: Sequence[bytes]) -> Any:
        """What a script replies. Refuses what it refuses, with the line that it ended at."""
        before, self._db, self._missing = self._db, db, None
        try:
            found = self._run(self._scripts[sha], self._table(keys), self._table(args))
        finally:
            self._db = before
        if self._missing is not None:
            raise self._missing
        kind, reply = found[0], found[1]
        if kind == VALUE:
            return self._replied(reply)
        if kind == STATUS:
            return Status(reply)
        said = reply.decode(errors="replace").replace("\r", " ").replace("\n", " ")
        if kind == RAISED:
            said = f"{said} script: {sha}, on @user_script:{found[2]}."
        raise Refusal(said)

    def _replied(self, value: Any) -> Any:
        kind = type(value)
        if kind is bytes or kind is int:
            return value
        if kind is float:
            return int(value)
        if kind is bool:
            return 1 if value else None
        if value is None or self._is_table(value) != "table":
            return None
        if (text := value[b"ok"]) is not None:
            return Status(text)
        if (text := value[b"err"]) is not None:
            return Refusal(text.decode(errors="replace"))
        replies = []
        for at in range(1, len(value) + 1):
            item = value[at]
            if item is None:
                break
            kind = type(item)
            replies.append(item if kind is bytes or kind is int else self._replied(item))
        return replies

    def _call(self, name: Any, *args: Any) -> Any:
        """What `redis.call` asks for: a reply, or a text with its kind."""
        for arg in args:
            if type(arg) is not bytes:
                try:
                    args = tuple(map(_as_text, args))
                except Refusal as refused:
                    return str(refused).encode(), 2
                break
        try:
            try:
                function, words = COMMANDS[name]
            except KeyError:
                function, words = self._command(name)
            given = len(args) + 1
            if given != words and (words > 0 or given < -words):
                return b"ERR Wrong number of args calling Redis command from script", 2
            reply = function(self._db, *args)
        except Refusal as refused:
            return str(refused).encode(), 2
        except Unsupported as missing:  # Lua may catch it, and must not go on as if it were refused
            self._missing = missing
            return str(missing).encode(), 2
        kind = type(reply)
        if kind is bytes or kind is int:
            return reply
        if kind is list:
            flat = [False if one is None else one for one in reply]
            if flat and type(flat[-1]) is list:  # entries of a stream, a page of a scan
                return self._table(flat, recursive=True)
            return self._table(flat)
        if reply is None:
            return False
        return bytes(reply), 1

    def _command(self, name: Any) -> Any:
        found = COMMANDS.get(_as_text(name).upper())
        if found is None:
            raise Unsupported(f"command {_as_text(name).decode(errors='replace')}")
        return found


def _as_text(value: Any) -> bytes:
    kind = type(value)
    if kind is bytes:
        return bytes(value)
    if kind is int and -EXACT < value < EXACT:
        return b"%d" % value
    if kind is int or kind is float:
        return repr(float(value)).encode()
    raise Refusal(NOT_TEXT)


def _sha1hex(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()


_engine: LuaEngine | None = None
_making = new_lock()


def engine() -> LuaEngine:
    """This process's. Raises ConfigError where lupa is not installed."""
    global _engine
    if _engine is None:
        with _making:
            if _engine is None:
                _engine = LuaEngine()
    return _engine
