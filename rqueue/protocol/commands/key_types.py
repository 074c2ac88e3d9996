"""Build the calls that look for keys of a wrong type, which something else wrote, and move them
away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.model.ids import MAX_ID_BYTES
from rqueue.protocol.call import Arg, CommandCall, ScriptCall, text
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_bytes, raw_text

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
        WrongType(raw_text(reply[i]), text(reply[i + 1]), text(reply[i + 2]))
        for i in range(0, len(reply), 3)
    ]


def _read_name(reply: Any) -> str:
    return raw_text(reply[0])


def check_types(keys: QueueKeys, names: Sequence[str]) -> ScriptCall[list[WrongType]]:
    """Which of these keys, given without the queue's prefix, are of a type that is not theirs."""
    return ScriptCall("check_types", keys.meta, ["keys", *map(raw_bytes, names)], _read_types)


def types_met_by(call: ScriptCall[Any] | CommandCall[Any]) -> ScriptCall[list[WrongType]]:
    """Which of the keys that this call may have met are of a type that is not theirs: those that
    its commands name; of a script, those that its queue speaks of, and those of what its arguments
    name."""
    if isinstance(call, CommandCall):
        base = raw_bytes(call.key[:-4])
        sent = [word for command in call.sent() for word in command[1:] if isinstance(word, bytes)]
        keys = dict.fromkeys(word[len(base) :] for word in sent if word.startswith(base))
        return ScriptCall("check_types", call.key, ["keys", *list(keys)[:TYPES_MAX]], _read_types)
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
    return ScriptCall("repair_type", keys.meta, [raw_bytes(key)], _read_name)
