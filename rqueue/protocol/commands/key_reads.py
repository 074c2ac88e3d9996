"""Build the call that asks of one moment what commands ask, where Redis refuses a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rqueue.protocol.call import Arg, ScriptCall


def _read_all(reply: Any) -> list[Any]:
    return list(reply)


def read_keys(key: str, asked: Sequence[tuple[Arg, ...]]) -> ScriptCall[list[Any]]:
    """The replies to commands that read, raw. key: the meta key of the queue that is asked."""
    args = [word for words in asked for word in (len(words) - 1, *words)]
    return ScriptCall("read_keys", key, args, _read_all)
