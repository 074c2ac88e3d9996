"""Build the calls about keys of unique jobs."""

from __future__ import annotations

from typing import Any

from rqueue.protocol.call import ScriptCall
from rqueue.protocol.keys import QueueKeys


def _read_id(reply: Any) -> str:
    id_: bytes = reply[1]
    return id_.decode("utf-8", "surrogateescape")


def key_owner(keys: QueueKeys, key: str, *, clear: bool = False) -> ScriptCall[str]:
    """The id of the job that has this key, "" where none has; clear: nobody has it any more."""
    return ScriptCall("key_owner", keys.meta, (key, "clear" if clear else "look"), _read_id)
