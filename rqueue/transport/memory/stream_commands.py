"""Redis's commands on streams."""

from __future__ import annotations

from typing import Any

from rqueue.transport.memory.arguments import SYNTAX, command, integer
from rqueue.transport.memory.keyspace import Keyspace, Refusal, Unsupported
from rqueue.transport.memory.stream import Entry, Stream, StreamId, id_text

__all__ = ["after", "read"]

INVALID = "ERR Invalid stream ID specified as stream command argument"
FIRST: StreamId = (0, 0)
LAST: StreamId = (2**64 - 1, 2**64 - 1)


def _id(text: bytes, number: int) -> StreamId:
    """An id; one that names milliseconds only has this number among theirs."""
    ms, dash, rest = text.partition(b"-")
    if not ms.isdigit() or (dash and not rest.isdigit()):
        raise Refusal(INVALID)
    return int(ms), int(rest) if dash else number


def _start(text: bytes) -> StreamId:
    if text == b"-":
        return FIRST
    if text == b"+":
        return LAST
    if text[:1] != b"(":
        return _id(text, 0)
    ms, number = _id(text[1:], 0)
    if (ms, number) == LAST:
        raise Refusal("ERR invalid start ID for the interval")
    return (ms, number + 1) if number < LAST[1] else (ms + 1, 0)


def _end(text: bytes) -> StreamId:
    if text == b"-":
        return FIRST
    if text == b"+":
        return LAST
    if text[:1] != b"(":
        return _id(text, LAST[1])
    ms, number = _id(text[1:], LAST[1])
    if (ms, number) == FIRST:
        raise Refusal("ERR invalid end ID for the interval")
    return (ms, number - 1) if number else (ms - 1, LAST[1])


def _replied(entries: list[Entry]) -> list[Any]:
    return [[id_text(id_), fields] for id_, fields in entries]


def _counted(entries: list[Entry], options: tuple[bytes, ...]) -> list[Any]:
    if options:
        if len(options) != 2 or options[0].upper() != b"COUNT":
            raise Refusal(SYNTAX)
        entries = entries[: max(0, integer(options[1]))]
    return _replied(entries)


@command("XADD", -5)
def _xadd(db: Keyspace, key: bytes, *words: bytes) -> bytes | None:
    make, most, at = True, None, 0
    while words[at : at + 1] and words[at] != b"*":
        option = words[at].upper()
        if option == b"NOMKSTREAM":
            make, at = False, at + 1
        elif option == b"MAXLEN" and len(words) > at + 1 and words[at + 1] not in (b"~", b"="):
            most, at = integer(words[at + 1]), at + 2
        else:
            raise Unsupported("XADD but with * for the id, NOMKSTREAM and MAXLEN")
    fields = list(words[at + 1 :])
    if not fields or len(fields) % 2:
        raise Refusal("ERR wrong number of arguments for 'xadd' command")
    if not make and db.find(key, Stream) is None:
        return None
    stream = db.made(key, Stream)
    added = stream.append(db.now_ms, fields)
    while most is not None and len(stream.ids) > most:
        stream.remove(stream.ids[0])
    return id_text(added)


@command("XLEN", 2)
def _xlen(db: Keyspace, key: bytes) -> int:
    found = db.find(key, Stream)
    return 0 if found is None else len(found.ids)


@command("XDEL", -3)
def _xdel(db: Keyspace, key: bytes, *ids: bytes) -> int:
    found = db.find(key, Stream)
    wanted = [_id(one, 0) for one in ids] if found is not None else []
    return 0 if found is None else sum(found.remove(one) for one in wanted)


@command("XRANGE", -4)
def _xrange(db: Keyspace, key: bytes, start: bytes, end: bytes, *options: bytes) -> list[Any]:
    first, last = _start(start), _end(end)
    found = db.find(key, Stream)
    return _counted([] if found is None else found.between(first, last), options)


@command("XREVRANGE", -4)
def _xrevrange(db: Keyspace, key: bytes, end: bytes, start: bytes, *options: bytes) -> list[Any]:
    first, last = _start(start), _end(end)
    found = db.find(key, Stream)
    return _counted([] if found is None else found.between(first, last)[::-1], options)


def after(db: Keyspace, key: bytes, id: bytes) -> bytes:
    """An id behind which a reader wants entries: `$` stands for the last one that there is."""
    if id != b"$":
        return id_text(_id(id, 0))
    found = db.find(key, Stream)
    return id_text(FIRST if found is None else found.last)


def read(db: Keyspace, keys: list[bytes], ids: list[bytes], count: int | None) -> list[Any] | None:
    """What XREAD replies: entries behind these ids, None where there are none."""
    parts = []
    for key, id_ in zip(keys, ids, strict=True):
        found = db.find(key, Stream)
        entries = [] if found is None else found.between(_start(b"(" + id_), LAST)[:count]
        if entries:
            parts.append([key, _replied(entries)])
    return parts or None
