"""Waiting until something can be read: the one place that does, for clients, workers and pools."""

from __future__ import annotations

import select
from collections.abc import Iterable
from errno import EBADF
from math import ceil
from typing import Any

__all__ = ["readable"]

LONGEST_MS = 86_400_000


def readable(watched: Iterable[Any], seconds: float | None) -> list[Any]:
    """Those of the sockets and descriptors of which a read would not wait, or [] after so many
    seconds (None: for ever). Raises OSError for a descriptor that is closed, and ValueError
    for a closed socket. Any descriptor will do: `select.select` refuses those from 1,024 up."""
    poll = select.poll()
    found = {}
    for one in watched:
        number = one if type(one) is int else one.fileno()
        found[number] = one
        poll.register(number, select.POLLIN)
    limit = None if seconds is None else min(LONGEST_MS, ceil(max(0.0, seconds) * 1000))
    ready = []
    for number, event in poll.poll(limit):
        if event & select.POLLNVAL:
            raise OSError(EBADF, f"file descriptor {number} is closed")
        ready.append(found[number])
    return ready
