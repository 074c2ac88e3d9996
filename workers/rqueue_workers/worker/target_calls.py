"""Calls to the queues that a queue's jobs are sent on to: on a cluster these are elsewhere."""

from __future__ import annotations

from time import monotonic
from typing import TypeVar

from rqueue.protocol.call import ScriptCall
from rqueue.protocol.forwarding import TargetAway
from rqueue.protocol.keys import queue_of
from rqueue.transport.connection import Connection

R = TypeVar("R")

AGAIN_S = 1.0
"""Seconds after which a target that could not be reached is tried again: jobs wait behind the one
whose outcome is sent on."""


class TargetCalls:
    """Of one queue, whose calls go over `connection`. Used under the dispatcher's lock."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._again_at: dict[str, float] = {}

    def run(self, call: ScriptCall[R]) -> R:
        """Run a call to the queue or to a target. Raises the tree of `rqueue.errors`, and
        TargetAway where a target cannot be reached now."""
        queue = queue_of(call.key)
        if monotonic() < self._again_at.get(queue, 0.0):
            raise TargetAway(f"queue '{queue}' could not be reached just now")
        try:
            return self._connection.run(call, queue=queue)
        except TargetAway:
            self._again_at[queue] = monotonic() + AGAIN_S
            raise
