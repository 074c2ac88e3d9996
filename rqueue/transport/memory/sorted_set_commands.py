"""Redis's commands on sorted sets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from rqueue.transport.memory.arguments import (
    SYNTAX,
    bounds_of,
    command,
    integer,
    limited,
    score,
    score_bound,
    score_text,
    spread,
)
from rqueue.transport.memory.hash_commands import check_scan
from rqueue.transport.memory.keyspace import Keyspace, Refusal, Unsupported
from rqueue.transport.memory.sorted_set import SortedSet

__all__: list[str] = []

Pairs = list[tuple[float, bytes]]
_NOTHING = SortedSet()
NOT_LEX = "ERR min or max not valid string range item"


def _of(db: Keyspace, key: bytes) -> SortedSet:
    return db.find(key, SortedSet) or _NOTHING


@command("ZADD", -4)
def _zadd(db: Keyspace, key: bytes, *words: bytes) -> int:
    new_only = old_only = False
    at = 0
    while words[at].upper() in (b"NX", b"XX"):
        new_only, old_only = new_only or words[at].upper() == b"NX", words[at].upper() == b"XX"
        at += 1
    if words[at].upper() in (b"GT", b"LT", b"CH", b"INCR"):
        raise Unsupported(f"option {words[at].decode()} of ZADD")
    rest = words[at:]
    if not rest or len(rest) % 2:
        raise Refusal(SYNTAX)
    if new_only and old_only:
        raise Refusal("ERR XX and NX options at the same time are not compatible")
    scored = [(score(rest[i]), rest[i + 1]) for i in range(0, len(rest), 2)]
    found = db.find(key, SortedSet)
    if found is None:
        if old_only:
            return 0
        found = db.made(key, SortedSet)
    added = 0
    for value, member in scored:
        known = member in found.scores
        if not (new_only and known) and not (old_only and not known):
            added += found.add(member, value)
    return added


@command("ZREM", -3)
def _zrem(db: Keyspace, key: bytes, *members: bytes) -> int:
    found = db.find(key, SortedSet)
    if found is None:
        return 0
    gone = sum(found.remove(member) for member in members)
    db.swept(key, found)
    return gone


@command("ZCARD", 2)
def _zcard(db: Keyspace, key: bytes) -> int:
    return len(_of(db, key))


@command("ZSCORE", 3)
def _zscore(db: Keyspace, key: bytes, member: bytes) -> bytes | None:
    value = _of(db, key).scores.get(member)
    return None if value is None else score_text(value)


@command("ZMSCORE", -3)
def _zmscore(db: Keyspace, key: bytes, *members: bytes) -> list[bytes | None]:
    scores = _of(db, key).scores
    return [score_text(scores[one]) if one in scores else None for one in members]


@command("ZRANK", 3)
def _zrank(db: Keyspace, key: bytes, member: bytes) -> int | None:
    found = _of(db, key)
    value = found.scores.get(member)
    return None if value is None else found.rank_of(value, member)


# -- by place --------------------------------------------------------------------------------------


def _with_scores(name: str, options: tuple[bytes, ...]) -> bool:
    if not options:
        return False
    if [word.upper() for word in options] != [b"WITHSCORES"]:
        raise Unsupported(f"option of {name} but WITHSCORES")
    return True


@command("ZRANGE", -4)
def _zrange(db: Keyspace, key: bytes, start: bytes, stop: bytes, *options: bytes) -> list[bytes]:
    places = integer(start), integer(stop)
    scores = _with_scores("ZRANGE", options)
    order = _of(db, key).order
    first, end = bounds_of(*places, len(order))
    return spread(order[first:end], scores)


@command("ZREVRANGE", -4)
def _zrevrange(db: Keyspace, key: bytes, start: bytes, stop: bytes, *options: bytes) -> list[bytes]:
    places = integer(start), integer(stop)
    scores = _with_scores("ZREVRANGE", options)
    order = _of(db, key).order
    first, end = bounds_of(*places, len(order))
    return spread(order[::-1][first:end], scores)


@command("ZREMRANGEBYRANK", 4)
def _zremrangebyrank(db: Keyspace, key: bytes, start: bytes, stop: bytes) -> int:
    places = integer(start), integer(stop)
    found = db.find(key, SortedSet)
    first, end = bounds_of(*places, len(found or ()))
    if found is None:
        return 0
    gone = found.remove_places(first, end)
    db.swept(key, found)
    return gone


@command("ZPOPMIN", -2)
def _zpopmin(db: Keyspace, key: bytes, *count: bytes) -> list[bytes]:
    most = integer(count[0], "ERR value is out of range, must be positive") if count else 1
    if most < 0 or len(count) > 1:
        raise Refusal("ERR value is out of range, must be positive" if most < 0 else SYNTAX)
    found = db.find(key, SortedSet)
    if found is None:
        return []
    first = found.order[:most]
    found.remove_places(0, most)
    db.swept(key, found)
    return spread(first, True)


# -- by score --------------------------------------------------------------------------------------


Bound = tuple[float, bool]


def _places(order: Pairs, least: Bound, most: Bound) -> tuple[int, int]:
    (low, without_low), (high, without_high) = least, most

    def key(pair: tuple[float, bytes]) -> float:
        return pair[0]

    first = (bisect_right if without_low else bisect_left)(order, low, key=key)
    end = (bisect_left if without_high else bisect_right)(order, high, key=key)
    return first, max(first, end)


def _part(found: Any, options: tuple[bytes, ...]) -> list[bytes]:
    offset, count, scores = limited(options)
    if offset < 0:
        return []
    end = None if count is None else offset + count
    return spread(found[offset:end], scores)


@command("ZCOUNT", 4)
def _zcount(db: Keyspace, key: bytes, least: bytes, most: bytes) -> int:
    low, high = score_bound(least), score_bound(most)
    first, end = _places(_of(db, key).order, low, high)
    return end - first


@command("ZRANGEBYSCORE", -4)
def _zrangebyscore(
    db: Keyspace, key: bytes, least: bytes, most: bytes, *options: bytes
) -> list[bytes]:
    low, high = score_bound(least), score_bound(most)
    order = _of(db, key).order
    first, end = _places(order, low, high)
    return _part(order[first:end], options)


@command("ZREVRANGEBYSCORE", -4)
def _zrevrangebyscore(
    db: Keyspace, key: bytes, most: bytes, least: bytes, *options: bytes
) -> list[bytes]:
    low, high = score_bound(least), score_bound(most)
    order = _of(db, key).order
    first, end = _places(order, low, high)
    return _part(order[first:end][::-1], options)


# -- by name ---------------------------------------------------------------------------------------


def _from(order: Pairs, bound: bytes) -> int:
    """The place of the first member that a lower bound lets in; of members of one score."""
    if bound in (b"-", b"+"):
        return 0 if bound == b"-" else len(order)
    names = [member for _, member in order]
    if bound[:1] == b"[":
        return bisect_left(names, bound[1:])
    if bound[:1] == b"(":
        return bisect_right(names, bound[1:])
    raise Refusal(NOT_LEX)


def _to(order: Pairs, bound: bytes) -> int:
    """The place behind the last member that an upper bound lets in."""
    if bound in (b"-", b"+"):
        return _from(order, bound)
    names = [member for _, member in order]
    if bound[:1] == b"[":
        return bisect_right(names, bound[1:])
    if bound[:1] == b"(":
        return bisect_left(names, bound[1:])
    raise Refusal(NOT_LEX)


@command("ZRANGEBYLEX", -4)
def _zrangebylex(
    db: Keyspace, key: bytes, least: bytes, most: bytes, *options: bytes
) -> list[bytes]:
    order = _of(db, key).order
    return _part(order[_from(order, least) : _to(order, most)], options)


@command("ZREVRANGEBYLEX", -4)
def _zrevrangebylex(
    db: Keyspace, key: bytes, most: bytes, least: bytes, *options: bytes
) -> list[bytes]:
    order = _of(db, key).order
    return _part(order[_from(order, least) : _to(order, most)][::-1], options)


# -- others ----------------------------------------------------------------------------------------


@command("ZUNIONSTORE", -4)
def _zunionstore(db: Keyspace, target: bytes, count: bytes, *keys: bytes) -> int:
    if integer(count) != 1 or len(keys) != 1:
        raise Unsupported("ZUNIONSTORE but of one key")
    made = SortedSet()
    for value, member in _of(db, keys[0]).order:
        made.add(member, value)
    db.delete(target)
    if made:
        db.put(target, made)
    return len(made)


@command("ZSCAN", -3)
def _zscan(db: Keyspace, key: bytes, cursor: bytes, *options: bytes) -> list[Any]:
    integer(cursor, "ERR invalid cursor")
    check_scan(options)
    pairs = _of(db, key).order
    return [b"0", [word for value, member in pairs for word in (member, _whole(value))]]


def _whole(value: float) -> bytes:
    """A score in a scan, which writes all whole numbers out."""
    return b"%d" % int(value) if abs(value) < 2**63 and value == int(value) else score_text(value)
