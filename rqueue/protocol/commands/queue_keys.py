"""Build the calls that ask whether a queue is there, what its `meta` says, and take it away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys


def _read_bool(replies: Sequence[Any]) -> bool:
    return bool(replies[0])


def _read_fields(replies: Sequence[Any]) -> list[bytes | None]:
    return list(replies[0])


def _read_count(replies: Sequence[Any]) -> int:
    return int(replies[0]) if replies else 0


def queue_exists(keys: QueueKeys) -> CommandCall[bool]:
    """Whether anything was ever enqueued, configured or consumed there."""
    return CommandCall(keys.meta, [("EXISTS", keys.meta)], _read_bool)


def is_used(keys: QueueKeys) -> CommandCall[bool]:
    """Whether it has jobs or consumers."""
    return CommandCall(keys.meta, [("EXISTS", keys.jobs, keys.consumers)], _read_bool)


def guard_exists(keys: QueueKeys) -> CommandCall[bool]:
    """Whether the key is there that never may be: see `ScriptCall.keys`."""
    return CommandCall(keys.meta, [("EXISTS", keys.guard)], _read_bool)


def meta_fields(keys: QueueKeys, *names: str) -> CommandCall[list[bytes | None]]:
    """Fields of `meta`; None for those that are not set."""
    return CommandCall(keys.meta, [("HMGET", keys.meta, *names)], _read_fields)


def remove_keys(keys: QueueKeys, found: Sequence[str]) -> CommandCall[int]:
    """Take these keys of the queue away, whatever is in them; answers how many there were."""
    return CommandCall(keys.meta, [("UNLINK", *found)] if found else [], _read_count)
