"""The client's script calls, over one connection per thread.

A pool costs more per command than the command itself. Most of a thread's calls come one after the
other, so a connection of its own serves it in half the time. While a call is under way the
connection is nobody's: a call in the middle of it (in a signal handler, in a finalizer that the
garbage collector runs) gets another one. A call whose connection broke is sent again a few times,
see `repeats`. `rqueue.transport.task_connections` is the same for asyncio.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Hashable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import redis

from rqueue.errors import RQueueError, ServerError
from rqueue.model.confirmation import Confirmation
from rqueue.model.connection_state import ConnectionStates
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.commands.commit import after_repeat
from rqueue.protocol.repeats import Repeats
from rqueue.transport import stand_in
from rqueue.transport.connection import Connection
from rqueue.transport.redis_client import url_of
from rqueue.transport.server_check import ServerFacts, first_look, server_facts

R = TypeVar("R")
T = TypeVar("T")
C = TypeVar("C", bound=Connection)


class Flight(NamedTuple, Generic[R]):
    """A call under way. Its connection carries nothing else until `ThreadConnections.finish`."""

    call: ScriptCall[R]
    connection: Connection | None
    lost: ServerError | None = None
    """The error with which sending failed: then there is no connection."""


class ThreadConnections:
    """Connections like the connections of `client`; thread-safe, and safe after a fork.

    `timeout`: seconds that a reply may take; None waits for ever.
    """

    def __init__(self, client: redis.Redis, timeout: float | None) -> None:
        self._client = client
        self.states = ConnectionStates()
        self.patience = timeout
        """Seconds that a reply may take; None: for ever."""
        self._confirmable: set[Confirmation] = set()
        self._mine = threading.local()
        self._all: weakref.WeakSet[Connection] = weakref.WeakSet()

    def run(
        self,
        call: ScriptCall[R],
        *,
        queue: str,
        consumer: str = "",
        repeats: Repeats | None = None,
    ) -> R:
        """Run a call and read its reply. repeats: how earlier tries of it failed. Raises the tree
        of `rqueue.errors`."""
        while True:
            connection = self._lent(call.key)
            try:
                if repeats is None:
                    answer = connection.run(call, queue=queue, consumer=consumer)
                else:
                    connection.until = repeats.until
                    try:
                        answer = connection.run(call, queue=queue, consumer=consumer)
                    finally:
                        connection.until = None
            except ServerError as error:
                self._keep(connection)
                self.states.fails(error)
                repeats = repeats or Repeats(self.patience)
                if pause := repeats.pause(error):
                    time.sleep(pause)
            except RQueueError:
                self._keep(connection)
                raise
            except BaseException:
                # interrupted in the middle: the reply may still come, as that of the next call
                connection.close()
                raise
            else:
                self._keep(connection)
                if stand_in.behind_call is not None or not self.states.reached:
                    self._worked(call.key)
                return answer if repeats is None else after_repeat(answer)

    def run_then(
        self, call: ScriptCall[R], command: tuple[Arg, ...], *, queue: str
    ) -> tuple[R, Any]:
        """Send a call and, in the same packet, a command that blocks until what the call prepared
        happens. Returns both replies. The command must block for less than `patience`. Nothing is
        repeated: after a failure the time left is another. Raises the tree of `rqueue.errors`."""
        connection = self._lent(call.key)
        try:
            replies = connection.run_then(call, command, queue=queue)
        except RQueueError:
            self._keep(connection)
            raise
        except BaseException:
            # interrupted in the middle: the reply may still come, as that of the next call
            connection.close()
            raise
        self._keep(connection)
        return replies

    def begin(self, call: ScriptCall[R]) -> Flight[R]:
        """Send a call and do not wait: `finish` has the reply. Where that fails, `finish` repeats
        the call."""
        connection = self._lent(call.key)
        try:
            connection.begin(call)
        except ServerError as error:
            return Flight(call, None, error)
        return Flight(call, connection)

    def finish(self, flight: Flight[R], *, queue: str) -> R:
        """The reply of a call that was begun. Raises the tree of `rqueue.errors`."""
        call, connection, lost = flight
        repeats = Repeats(self.patience)
        if connection is None:
            assert lost is not None
            time.sleep(repeats.pause(lost))
        else:
            try:
                reply = connection.finish(call, queue=queue)
            except ServerError as error:
                self.states.fails(error)
                self._keep(connection)
                repeats.pause(error)  # raises what is not to be sent again
            except RQueueError:
                self._keep(connection)
                raise
            except BaseException:
                connection.close()
                raise
            else:
                self._keep(connection)
                self._worked(call.key)
                return reply
        return self.run(call, queue=queue, repeats=repeats)

    def drop(self, flight: Flight[Any]) -> None:
        """Nobody reads the reply of a call that was begun."""
        if flight.connection is not None:
            flight.connection.close()

    def server_of(self, _key: str) -> Hashable:
        """What is one for all queues whose calls one server answers. key: a queue's meta key."""
        return id(self)

    def _worked(self, key: str) -> None:
        if not self.states.reached:
            self.states.works()
            first_look(url_of(self._client), partial(self.facts, key))
        if stand_in.behind_call is not None:
            stand_in.behind_call()

    def close(self) -> None:
        """Close the connections of all threads; the next call opens a new one."""
        for connection in list(self._all):
            connection.close()

    def close_client(self) -> None:
        """Close the connections that redis-py keeps."""
        self._client.close()

    def confirmable(self, _key: str) -> set[Confirmation]:
        """What the server of a queue can confirm, as far as that was asked. key: the queue's meta
        key."""
        return self._confirmable

    def facts(self, _key: str) -> ServerFacts:
        """What the server of a queue says of itself. Raises the tree of `rqueue.errors`."""
        return server_facts(self._client)

    def _lent(self, _key: str) -> Connection:
        """A connection for a call of a queue. It is nobody's until it is kept again."""
        free = self._free
        return free.pop() if free else self._made(Connection(self._client, self.patience))

    @property
    def _free(self) -> list[Any]:
        """This thread's connections that carry nothing, the last used one at the end."""
        try:
            return self._mine.free  # type: ignore[no-any-return]
        except AttributeError:
            # in one step: a call in the middle makes none of its own
            return self._mine.__dict__.setdefault("free", [])  # type: ignore[no-any-return]

    def _made(self, connection: C) -> C:
        self._all.add(connection)
        return connection

    def _keep(self, connection: Connection) -> None:
        self._free.append(connection)
