"""Calls to the queues that a queue's jobs are sent on to: on a cluster these are elsewhere."""

from __future__ import annotations

from time import monotonic
from typing import TypeVar

import redis

from rqueue.errors import ServerError
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.forwarding import TargetAway, target_away
from rqueue.protocol.keys import QueueKeys, queue_of
from rqueue.transport.connection import Connection
from rqueue.transport.routed_connection import connection_for

R = TypeVar("R")

ANSWER_S = 2.0
"""Seconds that a target may take to answer: jobs wait behind the one whose outcome is sent on."""

AGAIN_S = 1.0
"""Seconds after which a target that could not be reached is tried again."""


class TargetCalls:
    """Of one queue, whose own calls go over `connection`; each target has a connection of its own,
    made when it is first needed. Used under the dispatcher's lock."""

    def __init__(self, client: redis.Redis, connection: Connection, source: QueueKeys) -> None:
        self._client = client
        self._connection = connection
        self._source = source
        self._targets: dict[str, Connection] = {}
        self._again_at: dict[str, float] = {}

    def run(self, call: ScriptCall[R]) -> R:
        """Run a call to the source or to a target. Raises the tree of `rqueue.errors`, and
        TargetAway where a target cannot be reached now."""
        queue = queue_of(call.key)
        if queue == self._source.queue:
            return self._connection.run(call, queue=queue)
        target = self._targets.get(queue)
        if target is None:
            keys = QueueKeys(queue, self._source.namespace)
            target = self._targets[queue] = connection_for(
                self._client, keys, ANSWER_S, slot_wait=0.0
            )
        if monotonic() < self._again_at.get(queue, 0.0):
            raise TargetAway(f"queue '{queue}' could not be reached just now")
        try:
            return target.run(call, queue=queue)
        except ServerError as error:
            self._again_at[queue] = monotonic() + AGAIN_S
            raise target_away(call, error) from error

    def close(self) -> None:
        """Close the connections to the targets."""
        for target in self._targets.values():
            target.close()
