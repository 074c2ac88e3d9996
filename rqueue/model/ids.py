"""Job ids: chosen by the client, so that an enqueue that is sent twice is one job.

`new_id` makes 14 letters and digits, such as `VQnD2l80gXc3Tk`, in the base 62 whose digits sort as
their characters do: 7 for the milliseconds since 1970 (they suffice until 2081; the first one is a
letter), 7 for a number that begins at random in each millisecond and counts up. Ids of one process
therefore sort in the order in which they were made, also within a millisecond and when the clock
steps back; those of several processes as their clocks go.

Why 14: an id stands twice in each waiting job, as the field of a hash and as the element of a list.
With its header and its end, a field of 14 characters fills 16 bytes of Redis's allocator; one of 16
takes 24 or 32, the 36 of a UUID 40 or 48.

Whether two jobs can get one id: only if two processes make one in the same millisecond, and then
with a chance of 1 in 62**7, 3.5 * 10**12. A fleet that enqueues r jobs a second one by one makes r
* r / 2000 such pairs a second; at r = 1,000 all day long one pair agrees in 220 years, at 10,000 in
2.2 years (a batch counts on, and is no more likely to meet another than its jobs are). It must also
be the same queue: ids are compared nowhere else. And then no job is dropped: the queue refuses the
second one, and its client, who knows that this id was made just now, takes another one
(`rqueue.protocol.twin_ids.renamed`). Only where the answer to a first try was lost as well, a
client cannot tell the two. Ids are no secrets: a program that knows one can guess its neighbours.
"""

from __future__ import annotations

import os
import string
from collections.abc import Iterator
from time import time_ns

from rqueue.errors import InvalidName
from rqueue.model.locks import new_lock
from rqueue.model.names import refuse_control

__all__ = ["ID_CHARACTERS", "MAX_ID_BYTES", "check_id", "digits62", "new_id", "shortened"]

MAX_ID_BYTES = 512

ID_CHARACTERS = 14
"""Of an id that is made here."""

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
_BASE = len(_PAIRS)
_TIMES = 62**7  # milliseconds that 7 digits tell apart
_STEMS = 62**5  # starts of an id within a millisecond; what follows one is a pair

_DRAW = 6  # random bytes for one millisecond
_BUFFER = _DRAW * 500  # drawn at once: a call to the kernel costs more than the rest of an id

_lock = new_lock()
_busy = False
_between_ms = -1
"""Of an id that was made in the middle of making another one; -1: of none since."""
_draws: Iterator[bytes] = iter(())
_last_ms = -1
_stem = 0
_pair = 0
_era = -1
_era_digits = ""
_prefix = ""


def _forget() -> None:
    """Start over in a forked child: it must not continue its parent's random bytes or counter."""
    global _busy, _between_ms, _draws, _last_ms, _pair
    _draws = iter(())
    if _lock._is_owned():  # a signal handler has forked in the middle of `new_id`, which goes on
        _between_ms = max(0, _last_ms)
        return
    _busy = False
    _between_ms = _last_ms = -1
    _pair = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _drawn() -> tuple[int, int]:
    """A stem and a pair at random."""
    global _draws
    drawn = next(_draws, None)
    if drawn is None:
        bytes_ = os.urandom(_BUFFER)
        drawn = bytes_[:_DRAW]
        _draws = iter([bytes_[at : at + _DRAW] for at in range(_DRAW, _BUFFER, _DRAW)])
    # 2**48 draws spread over 62**7 numbers: each has its share to within 2 %
    return divmod(int.from_bytes(drawn, "big") * (_STEMS * _BASE) >> 8 * _DRAW, _BASE)


def _begin(ms: int, stem: int = -1) -> None:
    """Begin a new millisecond with a number drawn at random; or go on in one, at this stem."""
    global _last_ms, _stem, _pair, _era, _era_digits, _prefix
    if stem < 0:
        stem, _pair = _drawn()
    else:
        _pair = 0
    _last_ms, _stem = ms, stem
    era, moment = divmod(ms % _TIMES, _BASE)
    if era != _era:  # every 3.8 seconds
        _era, _era_digits = era, digits62(era, 5)
    rest, low = divmod(stem, _BASE)
    high, middle = divmod(rest, _BASE)
    _prefix = _era_digits + _PAIRS[moment] + _DIGITS[high] + _PAIRS[middle] + _PAIRS[low]


def _made_between(ms: int) -> str:
    """An id for a call in the middle of `new_id` on the same thread, as of a signal handler. The
    state is in the middle of a change: the next call begins it anew."""
    global _between_ms
    _between_ms = ms = max(ms, _last_ms + 1, _between_ms + 1)
    stem, pair = _drawn()
    return digits62(ms % _TIMES, 7) + digits62(stem, 5) + _PAIRS[pair]


def new_id() -> str:
    """A new id of 14 letters and digits, greater than every id made before in this process.

    Safe in threads, in signal handlers and after a fork.
    """
    global _busy, _between_ms, _pair
    ms = time_ns() // 1_000_000
    with _lock:
        if _busy:
            return _made_between(ms)
        _busy = True
        try:
            if ms > _last_ms and _between_ms < 0:
                _begin(ms)
            elif _between_ms >= 0:
                ms, _between_ms = max(ms, _last_ms + 1, _between_ms + 1), -1
                _begin(ms)
            elif _pair == _BASE:
                if _stem + 1 < _STEMS:
                    _begin(_last_ms, _stem + 1)
                else:
                    _begin(_last_ms + 1)  # this millisecond has no more
            made = _prefix + _PAIRS[_pair]
            _pair += 1
            return made
        finally:
            _busy = False


def digits62(number: int, width: int) -> str:
    """The last `width` digits of a number in base 62, with leading zeros."""
    text = ""
    while width > 1:
        number, pair = divmod(number, _BASE)
        text = _PAIRS[pair] + text
        width -= 2
    return _DIGITS[number % 62] + text if width else text


def shortened(digest: bytes) -> str:
    """A digest as an id: letters and digits, as many as its bits need, a letter first."""
    number = int.from_bytes(digest, "big")
    width = 1
    while 52 * 62 ** (width - 1) < 256 ** len(digest):
        width += 1
    first, rest = divmod(number, 62 ** (width - 1))
    return _DIGITS[10 + first] + digits62(rest, width - 1)


def check_id(id: str) -> str:
    """Return `id` when it may name a job: 1 to 512 bytes of UTF-8, no control characters.

    Raises InvalidName.
    """
    if type(id) is str and id.isascii():
        if 0 < len(id) <= MAX_ID_BYTES:
            return id if id.isprintable() else refuse_control("job id", id)
        size = len(id)
    elif isinstance(id, str):
        try:
            size = len(id.encode())
        except UnicodeEncodeError:
            raise InvalidName("job id", id, "has a lone surrogate: no UTF-8") from None
        if 0 < size <= MAX_ID_BYTES:
            return refuse_control("job id", str(id))
    else:
        raise InvalidName("job id", id, f"must be a str, not {type(id).__name__}")
    if not size:
        raise InvalidName("job id", id, "is empty")
    raise InvalidName("job id", id, f"has {size} bytes; at most {MAX_ID_BYTES} fit")
