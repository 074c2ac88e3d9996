"""Redis's commands on the bits of strings."""

from __future__ import annotations

import re

from rqueue.transport.memory.arguments import command, integer
from rqueue.transport.memory.keyspace import Keyspace, Refusal, Unsupported

__all__: list[str] = []

_WIDTH = re.compile(rb"u([1-9]|[1-5]\d|6[0-3])")
_MOST = 4 * 1024 * 1024 * 1024
_OFFSET = "ERR bit offset is not an integer or out of range"


def _place(text: bytes) -> int:
    """The place of a bit, from the highest one of the first byte on."""
    place = integer(text, _OFFSET)
    if not 0 <= place < _MOST:
        raise Refusal(_OFFSET)
    return place


def _bit(value: bytes | bytearray, place: int) -> int:
    byte = place >> 3
    return value[byte] >> (7 - place % 8) & 1 if byte < len(value) else 0


@command("GETBIT", 3)
def _getbit(db: Keyspace, key: bytes, place: bytes) -> int:
    at = _place(place)
    return _bit(db.find(key, bytes) or b"", at)


@command("BITCOUNT", -2)
def _bitcount(db: Keyspace, key: bytes, *options: bytes) -> int:
    if options:
        raise Unsupported("option of BITCOUNT")
    return int.from_bytes(db.find(key, bytes) or b"", "big").bit_count()


@command("BITPOS", -3)
def _bitpos(db: Keyspace, key: bytes, bit: bytes, *options: bytes) -> int:
    if options:
        raise Unsupported("option of BITPOS")
    wanted = integer(bit)
    if wanted not in (0, 1):
        raise Refusal("ERR The bit argument must be 1 or 0.")
    value = db.find(key, bytes)
    if value is None:
        return -1 if wanted else 0
    other = 0 if wanted else 255
    for at, byte in enumerate(value):
        if byte != other:
            return next(8 * at + n for n in range(8) if byte >> (7 - n) & 1 == wanted)
    return -1 if wanted else 8 * len(value)


@command("BITFIELD", -2)
def _bitfield(db: Keyspace, key: bytes, *words: bytes) -> list[int]:
    """Numbers without a sign alone: what `SET u<bits> <place> <number>` and `GET u<bits> <place>`
    do."""
    steps, at = [], 0
    while at < len(words):
        what, length = words[at].upper(), 4 if words[at].upper() == b"SET" else 3
        width = _WIDTH.fullmatch(words[at + 1]) if at + length <= len(words) else None
        if what not in (b"GET", b"SET") or width is None:
            raise Unsupported("BITFIELD but GET u<bits> and SET u<bits>")
        number = integer(words[at + 3]) if length == 4 else None
        steps.append((int(width[1]), _place(words[at + 2]), number))
        at += length
    value, found = bytearray(db.find(key, bytes) or b""), []
    for bits, place, number in steps:
        first, end = place >> 3, (place + bits + 7) >> 3
        shift, ones = 8 * end - place - bits, (1 << bits) - 1
        here = int.from_bytes(value[first:end].ljust(end - first, b"\0"), "big")
        found.append(here >> shift & ones)
        if number is not None:
            value.extend(bytes(max(0, end - len(value))))
            here = here & ~(ones << shift) | (number & ones) << shift
            value[first:end] = here.to_bytes(end - first, "big")
    if any(number is not None for _, _, number in steps):
        db.values[key] = bytes(value)
    return found


@command("BITFIELD_RO", -2)
def _bitfield_ro(db: Keyspace, key: bytes, *words: bytes) -> list[int]:
    if any(word.upper() == b"SET" for word in words):
        raise Refusal("ERR BITFIELD_RO only supports the GET subcommand")
    found: list[int] = _bitfield(db, key, *words)
    return found
