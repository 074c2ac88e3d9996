"""A worker's ways to its queues, and whether Redis can be reached on each.

One server is one way to all queues. On a cluster each queue has a way of its own: the node that has
it may go away, come back, or give it to another node, and the other queues do not notice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

import redis

from rqueue.errors import ServerError
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.course import Calls
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.transport.connection import Connection
from rqueue.transport.knock import LOOK_S
from rqueue.transport.redis_client import is_cluster
from rqueue.transport.routed_connection import connection_for
from rqueue.transport.wake_listener import WakeListener
from rqueue_workers.worker.outage import Outage
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.target_calls import TargetCalls
from rqueue_workers.worker.under_way import ANSWER_S, BRIEF_S, UnderWay

__all__ = ["Route", "open_routes"]


class Route:
    """Shared by the subscriptions whose `route` it is. connection: their calls go over it;
    listening: it is blocked on their wake lists. of: the queue that it leads to, where others have
    routes of their own, and do not wait for this one; "" where it is all. beside: makes another
    connection to it, for what goes on from there to other queues."""

    def __init__(
        self,
        connection: Connection,
        listening: Connection,
        of: str = "",
        beside: Callable[[], Connection] | None = None,
    ) -> None:
        self.apart = bool(of)
        """Whether others have routes of their own."""
        self.connection = connection
        self.listening = listening
        self.listener = WakeListener(listening)
        self.reporter = Reporter(connection)
        self.outage = Outage(of)
        self.away = False
        """Whether Redis cannot be used on it, as far as is known."""
        self.heard: set[str] = set()
        """Labels of the consumers whose wake-ups are listened to."""
        self.under_way: UnderWay | None = None
        """Calls whose replies are not waited for, since others have routes of their own: nothing
        else is said on this one before they are done."""
        self.forward: UnderWay | None = None
        """Those that send on what ended, beside the others: this queue does not wait for those that
        get it."""
        self._targets = TargetCalls(connection)
        self._beside = beside
        self._forwards: TargetCalls | None = None

    def begin(self, calls: Calls[None], consumer: ConsumerState) -> bool:
        """Make these calls; what is not answered at once is `under_way`. Whether all is done.
        Raises what the calls come to."""
        self.under_way = UnderWay(calls, consumer, self._targets, self.reporter)
        return self.go_on(BRIEF_S)

    def send_on(self, calls: Calls[None], consumer: ConsumerState) -> None:
        """Make these calls, which send on what ended, beside what else is said: `forward`."""
        if self._forwards is None:
            assert self._beside is not None
            self._forwards = TargetCalls(self._beside())
        self.forward = UnderWay(calls, consumer, self._forwards)
        self.go_on_forward(BRIEF_S)

    def go_on_forward(self, within: float = 0.0) -> None:
        """Go on with what is sent on, waiting at most so many seconds."""
        if self.forward is not None and self.forward.go_on(within):
            self.forward = None

    @property
    def connections(self) -> list[Connection]:
        """All that there are, but for the reporter's."""
        made = [] if self._forwards is None else [self._forwards.connection]
        return [self.connection, self.listening, *made]

    @property
    def ways(self) -> list[UnderWay]:
        """All calls whose replies are not waited for."""
        return [way for way in (self.under_way, self.forward) if way is not None]

    def go_on(self, within: float = 0.0) -> bool:
        """Go on with what is under way, if something is, waiting at most so many seconds; whether
        nothing is any more. Raises what the calls come to."""
        if self.under_way is None:
            return True
        try:
            over = self.under_way.go_on(within)
        except BaseException:
            self.under_way = None
            raise
        if over:
            self.under_way = None
        return over

    def gone(self, error: ServerError) -> None:
        """A call has failed: what is under way is given up, it may have been done all the same.
        Raises what waiting does not mend."""
        if (under_way := self.under_way) is not None:
            self.under_way = None
            under_way.abandon(error)
        if (forward := self.forward) is not None:
            self.forward = None
            forward.abandon(error)
        self.outage.note(error)
        self.away = True

    def back(self) -> None:
        """A call has succeeded."""
        self.outage.over()
        self.away = False

    @property
    def waiting(self) -> float:
        """Seconds until the next try, or the next look at one; 0.0 = now, or it is not away."""
        if self.under_way is None or not self.outage.since:
            return self.outage.waiting
        now = monotonic()
        return 0.0 if self.under_way.stirs(now) else min(LOOK_S, self.under_way.look_at - now)

    def close(self) -> None:
        """Close its connections."""
        self._targets.close()
        if self._forwards is not None:
            self._forwards.close()
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
    opened = partial(connection_for, client, keys, timeout=limit, slot_wait=0.0)
    return Route(opened(), connection_for(client, keys, timeout=None), of, opened)
