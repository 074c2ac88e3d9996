"""Redis's commands on sets."""

from __future__ import annotations

from rqueue.transport.memory.arguments import command, integer
from rqueue.transport.memory.keyspace import Keyspace, Set, Unsupported

__all__: list[str] = []

_NOTHING = Set()


@command("SADD", -3)
def _sadd(db: Keyspace, key: bytes, *members: bytes) -> int:
    found = db.made(key, Set)
    before = len(found)
    found.update(dict.fromkeys(members))
    return len(found) - before


@command("SREM", -3)
def _srem(db: Keyspace, key: bytes, *members: bytes) -> int:
    found = db.find(key, Set)
    if found is None:
        return 0
    before = len(found)
    for member in members:
        found.pop(member, None)
    db.swept(key, found)
    return before - len(found)


@command("SCARD", 2)
def _scard(db: Keyspace, key: bytes) -> int:
    return len(db.find(key, Set) or _NOTHING)


@command("SISMEMBER", 3)
def _sismember(db: Keyspace, key: bytes, member: bytes) -> int:
    return int(member in (db.find(key, Set) or _NOTHING))


@command("SMEMBERS", 2)
def _smembers(db: Keyspace, key: bytes) -> list[bytes]:
    return list(db.find(key, Set) or _NOTHING)


@command("SRANDMEMBER", -2)
def _srandmember(db: Keyspace, key: bytes, *count: bytes) -> list[bytes]:
    if len(count) != 1 or (wanted := integer(count[0])) < 0:
        raise Unsupported("SRANDMEMBER but with a count, which is not negative")
    return list(_smembers(db, key))[:wanted]
