"""All commands, by name: importing the modules enters theirs."""

from __future__ import annotations

from rqueue.transport.memory import (
    bit_commands,
    hash_commands,
    key_commands,
    list_commands,
    set_commands,
    sorted_set_commands,
    stream_commands,
)
from rqueue.transport.memory.arguments import COMMANDS

__all__ = ["COMMANDS", "MODULES"]

MODULES = (
    bit_commands,
    hash_commands,
    key_commands,
    list_commands,
    set_commands,
    sorted_set_commands,
    stream_commands,
)
