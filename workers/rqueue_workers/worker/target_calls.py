"""Calls to the queues that a queue's jobs are sent on to: on a cluster these are elsewhere."""

from __future__ import annotations

from time import monotonic
from typing import Any

from rqueue.errors import ServerError
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.forwarding import TargetAway, target_away
from rqueue.protocol.keys import queue_of
from rqueue.transport.connection import Connection
from rqueue.transport.knock import AnyKnock

AGAIN_S = 1.0
"""Seconds after which a target that could not be reached is looked for again."""


class TargetCalls:
    """Of one queue, whose calls go over `connection`. Used under the dispatcher's lock: jobs wait
    behind the one whose outcome is sent on, so a target that could not be reached has to answer a
    knock before it is tried again."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._again_at: dict[str, float] = {}
        """When a target that could not be reached is looked for."""
        self._knocks: dict[str, AnyKnock] = {}

    def way(self, call: ScriptCall[Any]) -> Connection:
        """The connection for a call to the queue, or to a target. Raises TargetAway where that
        could not be reached just now."""
        queue = queue_of(call.key)
        if queue in self._again_at and not self._answers(queue, call):
            raise TargetAway(f"queue '{queue}' could not be reached just now")
        return self.connection.leading_to(call.key)

    def lost(self, call: ScriptCall[Any], error: ServerError) -> TargetAway:
        """A call to a target failed: it is left alone for a while. Returns what says so."""
        self._again_at[queue_of(call.key)] = monotonic() + AGAIN_S
        return target_away(call, error)

    def close(self) -> None:
        """Look for nobody any more, and drop the connection."""
        self.connection.close()
        while self._knocks:
            self._knocks.popitem()[1].close()

    def _answers(self, queue: str, call: ScriptCall[Any]) -> bool:
        """Whether a target that could not be reached is to be tried now. Not waited for."""
        now = monotonic()
        if now < self._again_at[queue]:
            return False
        knock = self._knocks.pop(queue, None)
        try:
            knock = knock or self.connection.knock(call.key)
            answered = knock is None or knock.answered()
        except ServerError as error:
            raise self.lost(call, error) from error
        if answered:
            del self._again_at[queue]
            return True
        if answered is None:
            assert knock is not None
            self._knocks[queue] = knock
        else:
            self._again_at[queue] = now + AGAIN_S
        return False
