"""Redis's commands on hashes."""

from __future__ import annotations

from typing import Any

from rqueue.transport.memory.arguments import SYNTAX, command, integer
from rqueue.transport.memory.keyspace import Hash, Keyspace, Refusal

__all__ = ["check_scan"]

_NOTHING: Hash = {}


def _odd(name: str) -> Refusal:
    return Refusal(f"ERR wrong number of arguments for '{name}' command")


@command("HSET", -4)
def _hset(db: Keyspace, key: bytes, *pairs: bytes) -> int:
    if len(pairs) % 2:
        raise _odd("hset")
    found: Hash = db.made(key, dict)
    before = len(found)
    for at in range(0, len(pairs), 2):
        found[pairs[at]] = pairs[at + 1]
    return len(found) - before


@command("HSETNX", 4)
def _hsetnx(db: Keyspace, key: bytes, field: bytes, value: bytes) -> int:
    found: Hash = db.made(key, dict)
    if field in found:
        return 0
    found[field] = value
    return 1


@command("HGET", 3)
def _hget(db: Keyspace, key: bytes, field: bytes) -> bytes | None:
    found: Hash | None = db.find(key, dict)
    return None if found is None else found.get(field)


@command("HMGET", -3)
def _hmget(db: Keyspace, key: bytes, *fields: bytes) -> list[bytes | None]:
    found: Hash = db.find(key, dict) or _NOTHING
    return [found.get(field) for field in fields]


@command("HDEL", -3)
def _hdel(db: Keyspace, key: bytes, *fields: bytes) -> int:
    found: Hash | None = db.find(key, dict)
    if found is None:
        return 0
    gone = sum(found.pop(field, None) is not None for field in fields)
    db.swept(key, found)
    return gone


@command("HEXISTS", 3)
def _hexists(db: Keyspace, key: bytes, field: bytes) -> int:
    return int(field in (db.find(key, dict) or _NOTHING))


@command("HLEN", 2)
def _hlen(db: Keyspace, key: bytes) -> int:
    return len(db.find(key, dict) or _NOTHING)


@command("HSTRLEN", 3)
def _hstrlen(db: Keyspace, key: bytes, field: bytes) -> int:
    found: Hash = db.find(key, dict) or _NOTHING
    return len(found.get(field, b""))


@command("HKEYS", 2)
def _hkeys(db: Keyspace, key: bytes) -> list[bytes]:
    return list(db.find(key, dict) or _NOTHING)


@command("HVALS", 2)
def _hvals(db: Keyspace, key: bytes) -> list[bytes]:
    found: Hash = db.find(key, dict) or _NOTHING
    return list(found.values())


@command("HGETALL", 2)
def _hgetall(db: Keyspace, key: bytes) -> list[bytes]:
    found: Hash = db.find(key, dict) or _NOTHING
    return [word for pair in found.items() for word in pair]


@command("HINCRBY", 4)
def _hincrby(db: Keyspace, key: bytes, field: bytes, by: bytes) -> int:
    step = integer(by)
    found: Hash | None = db.find(key, dict)
    old = integer((found or _NOTHING).get(field, b"0"), "ERR hash value is not an integer")
    if not -(2**63) <= old + step < 2**63:
        raise Refusal("ERR increment or decrement would overflow")
    db.made(key, dict)[field] = b"%d" % (old + step)
    return old + step


@command("HSCAN", -3)
def _hscan(db: Keyspace, key: bytes, cursor: bytes, *options: bytes) -> list[Any]:
    # one page: Redis too answers so where a hash is small, whatever the count
    integer(cursor, "ERR invalid cursor")
    check_scan(options)
    return [b"0", _hgetall(db, key)]


def check_scan(options: tuple[bytes, ...]) -> None:
    """Refuse what is no option of a scan."""
    for at in range(0, len(options), 2):
        if options[at].upper() != b"COUNT" or at + 1 == len(options):
            raise Refusal(SYNTAX)
        if integer(options[at + 1]) < 1:
            raise Refusal(SYNTAX)


@command("HRANDFIELD", -2)
def _hrandfield(db: Keyspace, key: bytes, count: bytes, *options: bytes) -> list[bytes]:
    wanted = integer(count)
    if wanted < 0 or [word.upper() for word in options] not in ([], [b"WITHVALUES"]):
        raise Refusal(SYNTAX)
    found: Hash = db.find(key, dict) or _NOTHING
    pairs = list(found.items())[:wanted]
    return [word for pair in pairs for word in (pair if options else pair[:1])]
