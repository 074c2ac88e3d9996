"""Redis's commands on lists."""

from __future__ import annotations

from rqueue.transport.memory.arguments import SYNTAX, bounds_of, command, integer
from rqueue.transport.memory.keyspace import Keyspace, Refusal, Status, Unsupported

__all__ = ["move", "pop"]

Items = list[bytes]
NO_INDEX = "ERR index out of range"
NO_KEY = "ERR no such key"


@command("RPUSH", -3)
def _rpush(db: Keyspace, key: bytes, *items: bytes) -> int:
    found: Items = db.made(key, list)
    found.extend(items)
    return len(found)


@command("LPUSH", -3)
def _lpush(db: Keyspace, key: bytes, *items: bytes) -> int:
    found: Items = db.made(key, list)
    found[:0] = items[::-1]
    return len(found)


@command("LLEN", 2)
def _llen(db: Keyspace, key: bytes) -> int:
    return len(db.find(key, list) or ())


@command("LRANGE", 4)
def _lrange(db: Keyspace, key: bytes, start: bytes, stop: bytes) -> Items:
    places = integer(start), integer(stop)
    found: Items = db.find(key, list) or []
    first, end = bounds_of(*places, len(found))
    return found[first:end]


@command("LTRIM", 4)
def _ltrim(db: Keyspace, key: bytes, start: bytes, stop: bytes) -> Status:
    places = integer(start), integer(stop)
    found: Items | None = db.find(key, list)
    first, end = bounds_of(*places, len(found or ()))
    if found is not None:
        found[:] = found[first:end]
        db.swept(key, found)
    return Status(b"OK")


@command("LINDEX", 3)
def _lindex(db: Keyspace, key: bytes, index: bytes) -> bytes | None:
    found: Items | None = db.find(key, list)
    if found is None:
        return None
    at = integer(index)
    return found[at] if -len(found) <= at < len(found) else None


@command("LSET", 4)
def _lset(db: Keyspace, key: bytes, index: bytes, item: bytes) -> Status:
    found: Items | None = db.find(key, list)
    if found is None:
        raise Refusal(NO_KEY)
    at = integer(index)
    if not -len(found) <= at < len(found):
        raise Refusal(NO_INDEX)
    found[at] = item
    return Status(b"OK")


@command("LINSERT", 5)
def _linsert(db: Keyspace, key: bytes, where: bytes, pivot: bytes, item: bytes) -> int:
    side = where.upper()
    if side not in (b"BEFORE", b"AFTER"):
        raise Refusal(SYNTAX)
    found: Items | None = db.find(key, list)
    if found is None:
        return 0
    if pivot not in found:
        return -1
    found.insert(found.index(pivot) + (side == b"AFTER"), item)
    return len(found)


@command("LREM", 4)
def _lrem(db: Keyspace, key: bytes, count: bytes, item: bytes) -> int:
    most = integer(count)
    found: Items | None = db.find(key, list)
    if found is None:
        return 0
    places = [at for at, one in enumerate(found) if one == item]
    chosen = places if most == 0 else places[:most] if most > 0 else places[most:]
    for at in reversed(chosen):
        del found[at]
    db.swept(key, found)
    return len(chosen)


@command("LPOS", -3)
def _lpos(db: Keyspace, key: bytes, item: bytes, *options: bytes) -> int | list[int] | None:
    many, most = False, 0
    for at in range(0, len(options), 2):
        if at + 1 == len(options):
            raise Refusal(SYNTAX)
        if options[at].upper() != b"COUNT":
            raise Unsupported(f"option {options[at].decode(errors='replace')} of LPOS")
        many, most = True, integer(options[at + 1])
        if most < 0:
            raise Refusal("ERR COUNT can't be negative")
    found: Items = db.find(key, list) or []
    if not many:
        return found.index(item) if item in found else None
    places = [at for at, one in enumerate(found) if one == item]
    return places[:most] if most else places


def pop(db: Keyspace, key: bytes, left: bool) -> bytes | None:
    """Take the first item of a list, or its last one."""
    found: Items | None = db.find(key, list)
    if found is None:
        return None
    item = found.pop(0 if left else -1)
    db.swept(key, found)
    return item


def move(
    db: Keyspace, source: bytes, target: bytes, from_left: bool, to_left: bool
) -> bytes | None:
    """Take an item off one list and put it into another, or the same."""
    there: Items | None = db.find(source, list)
    if there is None:
        return None
    goes_to: Items | None = db.find(target, list)  # of the right type, before anything is moved
    item = there.pop(0 if from_left else -1)
    if goes_to is None:
        goes_to = db.made(target, list)
    goes_to.insert(0 if to_left else len(goes_to), item)
    db.swept(source, there)
    return item


def _popped(db: Keyspace, key: bytes, count: tuple[bytes, ...], left: bool) -> bytes | Items | None:
    if not count:
        return pop(db, key, left)
    most = integer(count[0], "ERR value is out of range, must be positive")
    if most < 0:
        raise Refusal("ERR value is out of range, must be positive")
    if len(count) > 1:
        raise Refusal(f"ERR wrong number of arguments for '{'l' if left else 'r'}pop' command")
    found: Items | None = db.find(key, list)
    if found is None:
        return None
    items = found[:most] if left else found[::-1][:most]
    found[:] = found[len(items) :] if left else found[: len(found) - len(items)]
    db.swept(key, found)
    return items


@command("LPOP", -2)
def _lpop(db: Keyspace, key: bytes, *count: bytes) -> bytes | Items | None:
    return _popped(db, key, count, True)


@command("RPOP", -2)
def _rpop(db: Keyspace, key: bytes, *count: bytes) -> bytes | Items | None:
    return _popped(db, key, count, False)
