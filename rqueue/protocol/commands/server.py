"""Build the calls that ask the server about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rqueue.protocol.call import CommandCall


def _read_info(replies: Sequence[Any]) -> dict[str, Any]:
    (info,) = replies
    if not isinstance(info, bytes):
        return dict(info)
    rows = (line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    return {name: int(said) if said.isdecimal() else said for name, said in rows}


def _read_nothing(replies: Sequence[Any]) -> None:
    pass


def server_info() -> CommandCall[Mapping[str, Any]]:
    """What INFO says, by its names; numbers as numbers."""
    return CommandCall("", [("INFO",)], _read_info)


def ping() -> CommandCall[None]:
    """Whether it answers."""
    return CommandCall("", [("PING",)], _read_nothing)


def cluster_nodes() -> CommandCall[str]:
    """What a node of a cluster knows of all: see `rqueue.protocol.cluster_view`."""
    return CommandCall("", [("CLUSTER", "NODES")], _read_text)


def cluster_info() -> CommandCall[dict[str, str]]:
    """How a node sees its cluster: `cluster_state` and others, by name."""
    return CommandCall("", [("CLUSTER", "INFO")], _read_lines)


def keys_in_slot(slot: int) -> CommandCall[int]:
    """How many keys of a slot a node has."""
    return CommandCall("", [("CLUSTER", "COUNTKEYSINSLOT", slot)], _read_number)


def setting(name: str) -> CommandCall[str]:
    """A setting of the server, "" where it has none of this name. Hosted servers refuse it."""
    return CommandCall("", [("CONFIG", "GET", name)], _read_setting)


def _read_text(replies: Sequence[Any]) -> str:
    (said,) = replies
    return said.decode() if isinstance(said, bytes) else str(said)


def _read_lines(replies: Sequence[Any]) -> dict[str, str]:
    lines = _read_text(replies).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _read_number(replies: Sequence[Any]) -> int:
    return int(replies[0])


def _read_setting(replies: Sequence[Any]) -> str:
    (found,) = replies
    values = list(found.values()) if isinstance(found, Mapping) else found[1::2]
    return _read_text(values) if values else ""
