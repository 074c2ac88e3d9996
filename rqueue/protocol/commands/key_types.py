"""Build the calls that look for keys of a wrong type, which something else wrote, and move them
away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.model.ids import MAX_ID_BYTES
from rqueue.protocol.call import Arg, ScriptCall, text
from rqueue.protocol.keys import QueueKeys

TYPES_MAX = 3000
"""Names that one call takes."""


class WrongType(NamedTuple):
    """A key that something else wrote. `key`: what follows the queue's prefix; `found`, `expected`:
    types as TYPE says them."""

    key: str
    found: str
    expected: str


def _read_types(reply: Any) -> list[WrongType]:
    return [
        WrongType(_text(reply[i]), text(reply[i + 1]), text(reply[i + 2]))
        for i in range(0, len(reply), 3)
    ]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _read_name(reply: Any) -> str:
    return _text(reply[0])


def check_types(keys: QueueKeys, names: Sequence[str]) -> ScriptCall[list[WrongType]]:
    """Which of these keys, given without the queue's prefix, are of a type that is not theirs."""
    return ScriptCall("check_types", keys.meta, ["keys", *map(_bytes, names)], _read_types)


def types_met_by(call: ScriptCall[Any]) -> ScriptCall[list[WrongType]]:
    """Which of the keys that this call may have met are of a type that is not theirs: those that
    its queue speaks of, and those of what its arguments name."""
    words: list[Arg] = [
        arg for arg in call.args if isinstance(arg, str | bytes) and 0 < len(arg) <= MAX_ID_BYTES
    ]
    if call.script == "enqueue" and isinstance(note := call.args[0], bytes):
        run, epoch, partition = note.partition(b";")[0].split(b",")[:3]
        words += [run, b":".join((run, epoch, partition))]
    return ScriptCall("check_types", call.key, ["words", *words[-TYPES_MAX:]], _read_types)


def repair_type(keys: QueueKeys, key: str) -> ScriptCall[str]:
    """Move a key of a wrong type away; answers its new name, "" where its type was right. Both are
    without the queue's prefix."""
    return ScriptCall("repair_type", keys.meta, [_bytes(key)], _read_name)
