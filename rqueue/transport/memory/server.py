"""One server in memory: its commands, one at a time, and the clients that wait for a key."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from rqueue.model.locks import new_lock
from rqueue.transport.memory.all_commands import COMMANDS
from rqueue.transport.memory.arguments import SYNTAX, integer, score
from rqueue.transport.memory.clock import Clock
from rqueue.transport.memory.keyspace import Keyspace, Refusal, Status, Unsupported
from rqueue.transport.memory.list_commands import move, pop
from rqueue.transport.memory.lua_engine import engine
from rqueue.transport.memory.stream_commands import after, read

__all__ = ["MemoryServer", "Waiter", "server_of"]

VERSION = "7.0.0"
OK = Status(b"OK")

GREETING = [
    *(b"server", b"redis", b"version", VERSION.encode(), b"proto", 2, b"id", 1),
    *(b"mode", b"standalone", b"role", b"master", b"modules", []),
]
INFO = (
    f"# Server\r\nredis_version:{VERSION}\r\nredis_mode:standalone\r\nrole:master\r\n"
    "loading:0\r\naof_enabled:0\r\nmaxmemory_policy:noeviction\r\n"
)

NO_SCRIPT = "NOSCRIPT No matching script. Please use EVAL."


class Waiter:
    """A client that is blocked. attempt: what it waits for, None while that is not there. until: by
    `time.monotonic()`, None for ever. heard: called, in any thread, once there is a reply."""

    __slots__ = ("attempt", "heard", "replied", "reply", "until")

    def __init__(self, attempt: Callable[[], Any], until: float | None) -> None:
        self.attempt = attempt
        self.until = until
        self.reply: Any = None
        self.replied = False
        self.heard: Callable[[], object] = lambda: None

    def answer(self, reply: Any) -> None:
        """It is not blocked any more."""
        self.reply, self.replied = reply, True
        self.heard()


class MemoryServer:
    """Keys, scripts and clients of one server. Thread-safe: each command has it for itself."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.clock = Clock()
        self.db = Keyspace()
        self._engine = engine()
        self._lock = self._engine.lock
        self._scripts: set[str] = set()
        self._waiters: list[Waiter] = []
        self.before_wait: Callable[[Sequence[bytes]], object] | None = None
        """Called with a command that is about to block; what it raises is raised to its caller."""
        self._own: dict[bytes, Callable[..., Any]] = {
            b"EVALSHA": self._evalsha,
            b"EVAL": self._eval,
            b"SCRIPT": self._script,
            b"PING": lambda *text: text[0] if text else Status(b"PONG"),
            b"HELLO": lambda *_: list(GREETING),
            b"INFO": lambda *_: INFO.encode(),
            b"CLIENT": lambda *_: OK,
            b"SELECT": lambda *_: OK,
            b"AUTH": lambda *_: OK,
            b"WAIT": lambda replicas, _ms: int(replicas),
            b"WAITAOF": lambda local, replicas, _ms: [int(local), int(replicas)],
        }
        self._blocking: dict[bytes, Callable[..., Any]] = {
            b"BLPOP": self._blpop,
            b"BLMOVE": self._blmove,
            b"XREAD": self._xread,
        }

    # -- commands ----------------------------------------------------------------------------------

    def run(self, words: Sequence[bytes]) -> Any:
        """What one command replies, a Waiter where its client is blocked. Raises Refusal, and
        Unsupported for what there is not."""
        with self._lock:
            self.db.now_us = self.clock.now_us
            name = words[0]
            own = self._own.get(name)
            if own is not None:
                reply = own(*words[1:])
            elif name in self._blocking:
                return self._blocked(words)
            else:
                reply = self._plain(words)
            if self._waiters:
                self._serve()
            return reply

    def run_all(self, commands: Sequence[Sequence[bytes]]) -> list[Any]:
        """What the commands of a transaction reply, for one moment; refusals among them."""
        replies: list[Any] = []
        with self._lock:
            for words in commands:
                try:
                    replies.append(self.run(words))
                except Refusal as refused:
                    replies.append(refused)
        return replies

    def _plain(self, words: Sequence[bytes]) -> Any:
        found = COMMANDS.get(words[0]) or COMMANDS.get(words[0].upper())
        if found is None:
            name = words[0].upper()
            if name != words[0] and (name in self._own or name in self._blocking):
                return self.run([name, *words[1:]])
            raise Unsupported(f"command {name.decode(errors='replace')}")
        function, count = found
        if len(words) != count and (count > 0 or len(words) < -count):
            name_ = words[0].decode().lower()
            raise Refusal(f"ERR wrong number of arguments for '{name_}' command")
        return function(self.db, *words[1:])

    # -- scripts -----------------------------------------------------------------------------------

    def _evalsha(self, sha: bytes, count: bytes, *words: bytes) -> Any:
        name, keys = sha.decode().lower(), integer(count)
        if name not in self._scripts:
            raise Refusal(NO_SCRIPT)
        return self._engine.run(self.db, name, words[:keys], words[keys:])

    def _eval(self, source: bytes, count: bytes, *words: bytes) -> Any:
        return self._evalsha(self._load(source), count, *words)

    def _load(self, source: bytes) -> bytes:
        sha = hashlib.sha1(source, usedforsecurity=False).hexdigest()
        self._engine.compile(sha, source)
        self._scripts.add(sha)
        return sha.encode()

    def _script(self, action: bytes, *words: bytes) -> Any:
        word = action.upper()
        if word == b"LOAD":
            return self._load(words[0])
        if word == b"EXISTS":
            return [int(one.decode() in self._scripts) for one in words]
        if word == b"FLUSH":
            self._scripts.clear()
            return OK
        raise Unsupported(f"command SCRIPT {word.decode()}")

    # -- clients that wait -------------------------------------------------------------------------

    def _blocked(self, words: Sequence[bytes]) -> Any:
        attempt, seconds = self._blocking[words[0]](*words[1:])
        reply = attempt()
        if reply is not None or seconds is None:
            if self._waiters:  # a list that something was put into may be another's
                self._serve()
            return reply
        if self.before_wait is not None:
            self.before_wait(words)
        waiter = Waiter(attempt, time.monotonic() + seconds if seconds else None)
        self._waiters.append(waiter)
        return waiter

    def give_up(self, waiter: Waiter) -> bool:
        """Block a client no longer: its time is over, or it has gone. False where it was answered
        before."""
        with self._lock:
            if waiter.replied:
                return False
            self._waiters.remove(waiter)
            waiter.replied = True
            return True

    def _serve(self) -> None:
        """Answer who waits for what is there now, who came first before others."""
        again = True
        while again:
            again = False
            for waiter in list(self._waiters):
                try:
                    reply = waiter.attempt()
                except Refusal:
                    continue  # as Redis does: a key of another type is none that it waits for
                if reply is not None:
                    self._waiters.remove(waiter)
                    waiter.answer(reply)
                    again = True  # what it took and put elsewhere may be another's

    def _blpop(self, *words: bytes) -> tuple[Callable[[], Any], float]:
        keys, seconds = words[:-1], _seconds(words[-1])

        def attempt() -> list[bytes] | None:
            for key in keys:
                item = pop(self.db, key, True)
                if item is not None:
                    return [key, item]
            return None

        return attempt, seconds

    def _blmove(
        self, source: bytes, target: bytes, off: bytes, onto: bytes, timeout: bytes
    ) -> tuple[Callable[[], Any], float]:
        sides = {b"LEFT": True, b"RIGHT": False}
        if off.upper() not in sides or onto.upper() not in sides:
            raise Refusal(SYNTAX)
        from_left, to_left = sides[off.upper()], sides[onto.upper()]
        return lambda: move(self.db, source, target, from_left, to_left), _seconds(timeout)

    def _xread(self, *words: bytes) -> tuple[Callable[[], Any], float | None]:
        count, seconds, at = None, None, 0
        while words[at].upper() != b"STREAMS":
            if words[at].upper() == b"COUNT":
                count = integer(words[at + 1])
            elif words[at].upper() == b"BLOCK":
                seconds = integer(words[at + 1]) / 1000
            else:
                raise Refusal(SYNTAX)
            at += 2
        rest = words[at + 1 :]
        keys = list(rest[: len(rest) // 2])
        ids = [after(self.db, key, id_) for key, id_ in zip(keys, rest[len(keys) :], strict=True)]
        return lambda: read(self.db, keys, ids, count), seconds


def _seconds(timeout: bytes) -> float:
    seconds = score(timeout, "ERR timeout is not a float or out of range")
    if seconds < 0:
        raise Refusal("ERR timeout is negative")
    return seconds


_servers: dict[str, MemoryServer] = {}
_making = new_lock()


def server_of(name: str) -> MemoryServer:
    """This process's server of a name, made where there is none. Raises ConfigError where lupa is
    not installed."""
    with _making:
        if name not in _servers:
            _servers[name] = MemoryServer(name)
        return _servers[name]


def forget(name: str) -> None:
    """Drop a server with all that it has; who is connected to it keeps it."""
    with _making:
        _servers.pop(name, None)
