"""A worker's ways to its queues, and whether Redis can be reached on each.

One server is one way to all queues. On a cluster each queue has a way of its own: the node that has
it may go away, come back, or give it to another node, and the other queues do not notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

import redis

from rqueue.errors import ServerError
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.transport.connection import Connection
from rqueue.transport.knock import LOOK_S, Knock
from rqueue.transport.redis_client import is_cluster
from rqueue.transport.routed_connection import connection_for
from rqueue.transport.wake_listener import WakeListener
from rqueue_workers.worker.outage import Outage
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.target_calls import TargetCalls

__all__ = ["ANSWER_S", "Route", "open_routes"]

ANSWER_S = 2.0
"""Seconds after which a node of a cluster that has not answered counts as gone."""

BRIEF_S = 0.002
"""Seconds that an answer of such a node is waited for, before other queues are seen to meanwhile:
nearly all come sooner."""


class Route:
    """Shared by the subscriptions whose `route` it is. connection: their calls go over it;
    listening: it is blocked on their wake lists. of: the queue that it leads to, where others have
    routes of their own, and do not wait for this one; "" where it is all."""

    def __init__(self, connection: Connection, listening: Connection, of: str = "") -> None:
        self.apart = bool(of)
        """Whether others have routes of their own."""
        self.due_at = 0.0
        """When the call that is under way counts as lost, by monotonic time."""
        self.connection = connection
        self.listening = listening
        self.listener = WakeListener(listening)
        self.reporter = Reporter(connection)
        self.targets = TargetCalls(connection)
        """Calls to the queues that jobs are sent on to, where these may be elsewhere."""
        self.outage = Outage(of)
        self.heard: set[str] = set()
        """Labels of the consumers whose wake-ups are listened to."""
        self._knock: Knock | None = None
        self._knocks = self.apart
        """Whether to know that it answers before it is tried again: others are served meanwhile."""

    def begun(self) -> None:
        """A call is under way, whose reply is not waited for."""
        self.due_at = monotonic() + ANSWER_S

    def answered(self, now: float) -> bool:
        """Whether something is to be done about the call under way: its reply is there, or should
        be."""
        return now >= self.due_at or self.connection.answered()

    def gone(self, error: ServerError) -> None:
        """A call has failed. Raises what waiting does not mend."""
        self._knocks = self.apart
        self.outage.note(error)

    def look(self) -> None:
        """Where Redis is gone and it is time to try again: see whether it answers, without waiting
        for it."""
        if not self._knocks or not self.outage.since or self.outage.waiting:
            return
        try:
            self._knock = self._knock or self.connection.knock()
        except ServerError as error:  # no node says who has the queue
            self.gone(error)
            return
        answered = self._knock is None or self._knock.answered()
        if answered is not None:
            self._knock = None
            self._knocks = not answered

    @property
    def away(self) -> bool:
        """Whether Redis cannot be used on it, as far as is known."""
        return bool(self.outage.since)

    @property
    def waiting(self) -> float:
        """Seconds until the next try; 0.0 = now, or it is not away."""
        if not self._knocks or not self.outage.since:
            return self.outage.waiting
        return self.outage.waiting or LOOK_S

    def close(self) -> None:
        """Close its connections."""
        if self._knock is not None:
            self._knock.close()
        self.targets.close()
        self.reporter.close()
        self.listener.close()
        self.connection.close()


def open_routes(
    client: redis.Redis, settings: Settings, queues: Sequence[QueueKeys]
) -> list[Route]:
    """The route to each of these queues; nothing is connected yet."""
    if is_cluster(client):
        limit = min(settings.command_timeout, ANSWER_S)
        return [_opened(client, limit, keys, keys.queue) for keys in queues]
    return [_opened(client, settings.command_timeout, queues[0], "")] * len(queues)


def _opened(client: redis.Redis, limit: float, keys: QueueKeys, of: str) -> Route:
    # a slot that moves is an outage: other queues are seen to meanwhile
    calls = connection_for(client, keys, timeout=limit, slot_wait=0.0)
    return Route(calls, connection_for(client, keys, timeout=None), of)
