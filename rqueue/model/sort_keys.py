"""Sort keys: numbers or text, written so that their texts stand in the order of the keys (Q-14).

`<type><bytes>`, hexadecimal: type 1 and the eight bytes of a double, big-endian, the sign turned;
or type 2 and UTF-8. So numbers go before text, and text goes by its code points. A queue whose
greatest key goes first notes each digit as what it lacks to f, and `z` behind them.
"""

from __future__ import annotations

import struct

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.model.names import check_sort_text

__all__ = ["SortKey", "check_sort_key", "sort_key_of", "sort_key_text", "upright"]

SortKey = str | int | float
"""What jobs can be sorted by."""

WHOLE = 2**53
"""Up to here whole numbers are exact."""

_NUMBER, _TEXT = "1", "2"
_TURNED = str.maketrans("0123456789abcdef", "fedcba9876543210")


def check_sort_key(value: object) -> SortKey:
    """Return `value` when jobs can be sorted by it: text of 1 to 128 bytes without control
    characters, or a number, a whole one from -2^53 to 2^53. Raises ConfigError and InvalidName."""
    if isinstance(value, str):
        return check_sort_text(value)
    if type(value) is int and -WHOLE <= value <= WHOLE:
        return value
    if type(value) is float and abs(value) < float("inf"):
        return value
    most = " from -2^53 to 2^53" if type(value) is int else ""
    raise ConfigError("sort_key", f"{shown(value)} is neither text nor a number{most}")


def sort_key_text(value: SortKey) -> str:
    """The key as it stands in terms."""
    if isinstance(value, str):
        return _TEXT + value.encode().hex()
    raw = struct.pack(">d", value + 0.0)  # of two zeros one
    turned = bytes(255 - byte for byte in raw) if raw[0] & 128 else bytes([raw[0] | 128, *raw[1:]])
    return _NUMBER + turned.hex()


def upright(text: str) -> str:
    """A key as it stands in terms, from how a queue has noted it."""
    return text[:-1].translate(_TURNED) if text.endswith("z") else text


def sort_key_of(text: str) -> SortKey | None:
    """The key that stands so in terms, or is noted so; None for what is none. A number that is
    whole is an int."""
    text = upright(text)
    try:
        raw = bytes.fromhex(text[1:])
        if text[:1] == _TEXT:
            return raw.decode()
        if text[:1] != _NUMBER or len(raw) != 8:
            return None
    except ValueError:
        return None
    number: float = struct.unpack(
        ">d", bytes([raw[0] & 127, *raw[1:]]) if raw[0] & 128 else bytes(255 - byte for byte in raw)
    )[0]
    return int(number) if number.is_integer() and abs(number) <= WHOLE else number
