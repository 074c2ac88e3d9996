"""The client's script calls, over one wire per thread.

A pool costs a command more than the command itself does. A thread's calls come one after the other,
so a wire of its own serves it as well, in half the time. A call whose connection broke is sent
again a few times, see `repeats`.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import redis

from rqueue.errors import RQueueError, ServerError
from rqueue.protocol.call import Arg, Call
from rqueue.protocol.commands.enqueue import said_again
from rqueue.protocol.repeats import Repeats
from rqueue.transport.connection import Wire

R = TypeVar("R")
T = TypeVar("T")


class Flight(NamedTuple, Generic[R]):
    """A call under way: the wire that carries it is its own until `Lines.finish`."""

    call: Call[R]
    wire: Wire | None
    lost: ServerError | None = None
    """What went wrong when it was begun: then there is no wire."""


class Lines:
    """Wires like the connections of `client`; thread-safe, and safe after a fork.

    `timeout`: seconds that a reply may take; None waits for ever.
    """

    def __init__(self, client: redis.Redis, timeout: float | None) -> None:
        self._client = client
        self._timeout = timeout
        self._mine = threading.local()
        self._all: weakref.WeakSet[Wire] = weakref.WeakSet()

    def run(self, call: Call[R], *, queue: str) -> R:
        """Run a call and read its reply. Raises the tree of `rqueue.errors`."""
        answer: R = self._tried(Wire.run, call, queue=queue)
        return answer

    def run_then(self, call: Call[R], command: tuple[Arg, ...], *, queue: str) -> tuple[R, Any]:
        """Run a call and a command that waits for what the call has announced: both replies. The
        command is to wait for less than `patience`. Nothing is repeated: after a failure another
        time is left to wait. Raises the tree of `rqueue.errors`."""
        wire = self._wire()
        try:
            return wire.run_then(call, command, queue=queue)
        except RQueueError:
            raise
        except BaseException:
            # interrupted in the middle: a reply that nobody waits for may still come
            wire.close()
            raise

    @property
    def patience(self) -> float | None:
        """Seconds that a reply may take; None: for ever."""
        return self._timeout

    def _tried(
        self,
        action: Callable[..., T],
        *arguments: object,
        queue: str,
        lost: ServerError | None = None,
    ) -> T:
        repeats = None
        while True:
            wire = self._wire()
            try:
                answer = action(wire, *arguments, queue=queue)
            except ServerError as error:
                repeats = repeats or Repeats(lost)
                if pause := repeats.pause(error):
                    time.sleep(pause)
            except RQueueError:
                raise
            except BaseException:
                # interrupted in the middle: a reply that nobody waits for may still come
                wire.close()
                raise
            else:
                return answer if repeats is None and lost is None else said_again(answer)

    def begin(self, call: Call[R]) -> Flight[R]:
        """Send a call and do not wait: `finish` has the reply. Where that fails, `finish` repeats
        the call."""
        wire = self._wire()
        # until then another call of this thread must not read the reply: it takes another wire
        self._mine.pid = None
        try:
            wire.begin(call)
        except ServerError as error:
            return Flight(call, None, error)
        return Flight(call, wire)

    def finish(self, flight: Flight[R], *, queue: str) -> R:
        """The reply of a call that was begun. Raises the tree of `rqueue.errors`."""
        call, wire, lost = flight
        if wire is not None:
            try:
                reply = wire.finish(call, queue=queue)
            except ServerError as error:
                self._keep(wire)
                Repeats().pause(error)  # raises what is not to be sent again
                lost = error
            except RQueueError:
                self._keep(wire)
                raise
            except BaseException:
                wire.close()
                raise
            else:
                self._keep(wire)
                return reply
        answer: R = self._tried(Wire.run, call, queue=queue, lost=lost)
        return answer

    def close(self) -> None:
        """Close the wires of all threads; the next call opens a new one."""
        for wire in list(self._all):
            wire.close()

    def _wire(self) -> Wire:
        mine = self._mine
        if getattr(mine, "pid", None) != os.getpid():
            # a forked child must not write into its parent's connection
            self._keep(Wire(self._client, self._timeout))
        wire: Wire = mine.wire
        return wire

    def _keep(self, wire: Wire) -> None:
        self._mine.wire = wire
        self._mine.pid = os.getpid()
        self._all.add(wire)
