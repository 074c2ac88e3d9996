"""Redis's commands on keys of any type, and on strings."""

from __future__ import annotations

import re
from typing import Any

from rqueue.transport.memory.arguments import SYNTAX, bounds_of, command, integer
from rqueue.transport.memory.keyspace import Keyspace, Refusal, Status, Unsupported

__all__: list[str] = []


@command("DEL", -2)
def _delete(db: Keyspace, *keys: bytes) -> int:
    return sum(db.get(key) is not None and db.delete(key) for key in keys)


command("UNLINK", -2)(_delete)


@command("EXISTS", -2)
def _exists(db: Keyspace, *keys: bytes) -> int:
    return sum(db.get(key) is not None for key in keys)


@command("TYPE", 2)
def _kind(db: Keyspace, key: bytes) -> Status:
    return Status(db.kind(key))


@command("RENAME", 3)
def _rename(db: Keyspace, old: bytes, new: bytes) -> Status:
    value = db.get(old)
    if value is None:
        raise Refusal("ERR no such key")
    if old != new:
        end = db.ends_ms.get(old)
        db.delete(old)
        db.put(new, value)
        if end is not None:
            db.ends_ms[new] = end
    return Status(b"OK")


@command("PEXPIRE", -3)
def _pexpire(db: Keyspace, key: bytes, ms: bytes, *options: bytes) -> int:
    if options:
        raise Unsupported("option of PEXPIRE")
    after = integer(ms)
    if db.get(key) is None:
        return 0
    if after <= 0:
        db.delete(key)
    else:
        db.ends_ms[key] = db.now_ms + after
    return 1


@command("PTTL", 2)
def _pttl(db: Keyspace, key: bytes) -> int:
    if db.get(key) is None:
        return -2
    return db.ends_ms[key] - db.now_ms if key in db.ends_ms else -1


@command("PERSIST", 2)
def _persist(db: Keyspace, key: bytes) -> int:
    return int(db.get(key) is not None and db.ends_ms.pop(key, None) is not None)


@command("TIME", 1)
def _time(db: Keyspace) -> list[bytes]:
    return [b"%d" % part for part in divmod(db.now_us, 1_000_000)]


@command("KEYS", 2)
def _keys(db: Keyspace, pattern: bytes) -> list[bytes]:
    matches = _matcher(pattern)
    return [key for key in db.names() if matches.fullmatch(key)]


@command("SCAN", -2)
def _scan(db: Keyspace, cursor: bytes, *options: bytes) -> list[Any]:
    integer(cursor, "ERR invalid cursor")
    pattern, wanted = b"*", None
    for at in range(0, len(options) - 1, 2):
        word, value = options[at].upper(), options[at + 1]
        if word == b"MATCH":
            pattern = value
        elif word == b"TYPE":
            wanted = value
        elif word != b"COUNT" or integer(value) < 1:
            raise Refusal(SYNTAX)
    found = _keys(db, pattern)
    return [b"0", [key for key in found if wanted is None or db.kind(key) == wanted]]


_GLOB = re.compile(rb"\\(.)|\[(\^?)((?:\\.|[^\]])*)\]|([*?])|(.)", re.DOTALL)


def _matcher(pattern: bytes) -> re.Pattern[bytes]:
    def part(found: re.Match[bytes]) -> bytes:
        escaped, negated, chars, wild, plain = found.groups()
        if wild:
            return b".*" if wild == b"*" else b"."
        if chars is not None:
            return b"[" + (negated or b"") + chars.replace(b"[", rb"\[") + b"]"
        return re.escape(escaped or plain)

    return re.compile(_GLOB.sub(part, pattern), re.DOTALL)


@command("DBSIZE", 1)
def _dbsize(db: Keyspace) -> int:
    return len(db.names())


@command("FLUSHDB", -1)
def _flushdb(db: Keyspace, *_: bytes) -> Status:
    db.values.clear()
    db.ends_ms.clear()
    return Status(b"OK")


command("FLUSHALL", -1)(_flushdb)


# -- strings ---------------------------------------------------------------------------------------


@command("GET", 2)
def _get(db: Keyspace, key: bytes) -> bytes | None:
    return db.find(key, bytes)


@command("SET", -3)
def _set(db: Keyspace, key: bytes, value: bytes, *options: bytes) -> Status:
    if options:
        raise Unsupported("option of SET")
    db.put(key, value)
    return Status(b"OK")


@command("APPEND", 3)
def _append(db: Keyspace, key: bytes, more: bytes) -> int:
    value = db.values[key] = (db.find(key, bytes) or b"") + more
    return len(value)


@command("STRLEN", 2)
def _strlen(db: Keyspace, key: bytes) -> int:
    return len(db.find(key, bytes) or b"")


@command("GETRANGE", 4)
def _getrange(db: Keyspace, key: bytes, start: bytes, stop: bytes) -> bytes:
    places = integer(start), integer(stop)
    value = db.find(key, bytes) or b""
    first, end = bounds_of(*places, len(value))
    return value[first:end]


@command("SETRANGE", 4)
def _setrange(db: Keyspace, key: bytes, start: bytes, part: bytes) -> int:
    at = integer(start)
    if at < 0:
        raise Refusal("ERR offset is out of range")
    value = db.find(key, bytes) or b""
    if part:
        value = value[:at].ljust(at, b"\0") + part + value[at + len(part) :]
        db.values[key] = value
    return len(value)
