"""Build the calls that ask the server about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rqueue.protocol.call import CommandCall


def _read_info(replies: Sequence[Any]) -> dict[str, Any]:
    (info,) = replies
    return dict(info)


def _read_nothing(replies: Sequence[Any]) -> None:
    pass


def server_info() -> CommandCall[Mapping[str, Any]]:
    """What INFO says, by its names; numbers as numbers."""
    return CommandCall("", [("INFO",)], _read_info)


def ping() -> CommandCall[None]:
    """Whether it answers."""
    return CommandCall("", [("PING",)], _read_nothing)
