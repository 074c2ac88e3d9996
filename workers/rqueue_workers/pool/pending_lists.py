"""What the supervisor has Redis do, in all of its pool's queues: a list for each way to Redis.

One server is one way, and one list. On a cluster each queue has its own, with a connection of its
own: where a node does not answer, its calls alone are late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.server_clock import ServerClock
from rqueue.transport.lease_renewer import RenewalPace
from rqueue.transport.redis_client import is_cluster, open_client
from rqueue.transport.routed_connection import connection_for
from rqueue.transport.sentinel import sentinels_of
from rqueue_workers.pool.pending_commands import PendingCommand, PendingCommands
from rqueue_workers.spec import WorkerSpec

__all__ = ["PendingLists", "open_lists"]

LOGIN_S = 2.0
"""Seconds that connecting may take: answers are never waited for, but a login is."""

ANSWER_S = 2.0
"""Seconds after which a server that has not answered counts as gone at the soonest, where another
one may take its place."""


class PendingLists:
    """lists: by queue; several queues may have the same. other: makes the one of a queue that is
    not among them: a job is to be sent there, or it is served since then. found_again: called with
    each queue whose Redis was silent, and answers now."""

    def __init__(
        self,
        lists: Mapping[str, PendingCommands],
        other: Callable[[str], PendingCommands],
        found_again: Callable[[str], None],
    ) -> None:
        self._by_queue = dict(lists)
        self._other = other
        self._lists: list[PendingCommands] = []
        self._found_again = found_again
        for one in dict.fromkeys(lists.values()):
            self._enter(one)

    def _enter(self, one: PendingCommands) -> None:
        self._lists.append(one)
        one.again = self.add
        one.found_again = partial(self._answers, one)

    def _answers(self, one: PendingCommands) -> None:
        for queue in [queue for queue, its in self._by_queue.items() if its is one]:
            self._found_again(queue)

    def add(self, pending: PendingCommand, *, first: bool = False) -> None:
        """Put it on the list of its queue; one that is there already is not put there twice."""
        self._of(pending.queue).add(pending, first=first)

    def _of(self, queue: str) -> PendingCommands:
        chosen = self._by_queue.get(queue)
        if chosen is None:
            chosen = self._by_queue[queue] = self._other(queue)
            if chosen not in self._lists:
                self._enter(chosen)
        return chosen

    def clock(self, queue: str) -> ServerClock:
        """That of the Redis which has a queue."""
        return self._of(queue).clock

    @property
    def idle(self) -> bool:
        """Whether everything is done."""
        return all(one.idle for one in self._lists)

    def holds(self, kind: type[PendingCommand]) -> bool:
        """Whether one of this kind is still to be done, where Redis can be used."""
        return any(one.holds(kind) for one in self._lists if not one.gone)

    @property
    def gone(self) -> list[str]:
        """The queues whose Redis cannot be used at the moment, of which it is known."""
        return [queue for queue, one in self._by_queue.items() if one.gone]

    @property
    def sockets(self) -> list[Any]:
        """What to watch for answers."""
        return [sock for one in self._lists if (sock := one.socket) is not None]

    @property
    def wake_at(self) -> float | None:
        """When `step` has something to do at the latest, by `time.monotonic()`."""
        return min((at for one in self._lists if (at := one.wake_at) is not None), default=None)

    def step(self, now: float, readable: list[Any]) -> None:
        """Read the answers that are there, and send the next calls."""
        for one in list(self._lists):
            one.step(now, one.socket in readable)

    def close(self) -> None:
        """Drop the connections. In a forked child too: the supervisor's own stay as they are."""
        for one in self._lists:
            one.close()


def open_lists(spec: WorkerSpec, found_again: Callable[[str], None]) -> PendingLists:
    """The lists of a pool with such workers; nothing is connected yet. found_again: see
    `PendingLists`. Raises ConfigError."""
    settings = spec.settings
    brief = min(LOGIN_S, settings.connect_timeout)
    client = open_client(settings.url or "", socket_connect_timeout=brief)

    replaceable = (
        is_cluster(client) or sentinels_of(getattr(client, "connection_pool", None)) is not None
    )

    def opened(queue: str, of: str) -> PendingCommands:
        keys = QueueKeys(queue, settings.namespace)
        connection = connection_for(client, keys, timeout=brief, slot_wait=0.0)
        pace = RenewalPace(settings.lease_ms)
        limit = settings.command_timeout
        if replaceable:
            limit = min(limit, max(ANSWER_S, pace.probe_every))
        return PendingCommands(connection, pace, limit, of, replaceable=replaceable)

    if is_cluster(client):
        lists = {queue: opened(queue, queue) for queue in spec.queues}
        return PendingLists(lists, lambda queue: opened(queue, queue), found_again)
    one = opened(spec.queues[0], "")
    return PendingLists(dict.fromkeys(spec.queues, one), lambda _queue: one, found_again)
