"""Build the calls about keys of unique jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rqueue.protocol.call import ScriptCall
from rqueue.protocol.keys import QueueKeys

KEYS_MOST = 250
"""Keys that one call looks at."""


def _read_ids(reply: Any) -> list[str]:
    return [id_.decode("utf-8", "surrogateescape") for id_ in reply[1]]


def _read_id(reply: Any) -> str:
    return _read_ids(reply)[0]


def key_owner(keys: QueueKeys, key: str, *, clear: bool = False) -> ScriptCall[str]:
    """The id of the job that has this key, "" where none has; clear: nobody has it any more."""
    return ScriptCall("key_owner", keys.meta, ("clear" if clear else "look", key), _read_id)


def key_owners(keys: QueueKeys, unique: Sequence[str]) -> ScriptCall[list[str]]:
    """The ids of the jobs that have these keys, "" where none has; at most `KEYS_MOST`."""
    return ScriptCall("key_owner", keys.meta, ("look", *unique), _read_ids)


def mend_keys(keys: QueueKeys, unique: Sequence[str]) -> ScriptCall[list[str]]:
    """Free those of these keys that are of no job which lives and says so, nor of a period that
    goes on; at most `KEYS_MOST`."""
    return ScriptCall("key_owner", keys.meta, ("mend", *unique), _read_ids)
