"""Job ids: chosen by the client, so that an enqueue that is sent twice is one job.

`new_id` makes UUIDv7 text (RFC 9562): 48 bits of milliseconds, then 74 bits of which 26 are drawn
afresh for each millisecond and 48 count up from a random start (section 6.2, a counter with a fresh
random seed in each tick). Ids of one process therefore sort in the order in which they were made,
also within one millisecond and when the clock steps back, and ids of a burst differ in their last
bytes only, which history compresses away.
"""

from __future__ import annotations

import os
from threading import Lock
from time import time_ns

from rqueue.errors import InvalidName

__all__ = ["MAX_ID_BYTES", "check_id", "new_id"]

MAX_ID_BYTES = 512

_DRAW = 10  # random bytes for one millisecond
_BUFFER = _DRAW * 256  # drawn at once: a call to the kernel costs more than the rest of an id

_lock = Lock()
_random = b""
_used = 0
_last_ms = -1
_prefix = ""
_count = 0


def _forget() -> None:
    """Start over in a forked child: it must not continue its parent's random bytes or counter."""
    global _lock, _random, _used, _last_ms
    _lock = Lock()  # the parent may have held it at the fork
    _random = b""
    _used = 0
    _last_ms = -1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _tick(ms: int) -> None:
    """Begin a new millisecond: fixed part from fresh random bits, counter at a random start."""
    global _random, _used, _last_ms, _prefix, _count
    if _used >= len(_random):
        _random = os.urandom(_BUFFER)
        _used = 0
    bits = int.from_bytes(_random[_used : _used + _DRAW], "big")
    _used += _DRAW
    rand_a = bits & 0xFFF
    rand_b = bits >> 12 & 0x3FFF | 0x8000  # variant 0b10, then the upper 14 of 62 bits
    # The top bit of the counter starts at zero: room for 2**47 ids before it could overflow.
    _count = bits >> 26 & 0x7FFFFFFFFFFF
    _prefix = f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7{rand_a:03x}-{rand_b:04x}-"
    _last_ms = ms


def new_id() -> str:
    """A new UUIDv7 as text: unique, and greater than every id made before in this process.

    Safe in threads and after a fork.
    """
    global _count
    ms = time_ns() // 1_000_000
    with _lock:
        if ms > _last_ms:
            _tick(ms)
        _count += 1
        return f"{_prefix}{_count:012x}"


def check_id(id: str) -> str:
    """Return `id` when it may name a job: 1 to 512 bytes of UTF-8, any characters at all.

    Raises InvalidName.
    """
    if type(id) is str and id.isascii():
        if 0 < len(id) <= MAX_ID_BYTES:
            return id
        size = len(id)
    elif isinstance(id, str):
        try:
            size = len(id.encode())
        except UnicodeEncodeError:
            raise InvalidName("job id", id, "has a lone surrogate: no UTF-8") from None
        if 0 < size <= MAX_ID_BYTES:
            return str(id)
    else:
        raise InvalidName("job id", id, f"must be a str, not {type(id).__name__}")
    if not size:
        raise InvalidName("job id", id, "is empty")
    raise InvalidName("job id", id, f"has {size} bytes; at most {MAX_ID_BYTES} fit")
