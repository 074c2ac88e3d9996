"""The client's script calls, over one wire per thread.

A pool costs a command more than the command itself does. A thread's calls come one after the other,
so a wire of its own serves it as well, in half the time. A call whose connection broke is sent
again a few times: all that the client sends may be repeated (an enqueue by its id).
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from typing import TypeVar

import redis

from rqueue.errors import ConnectionLost, RedisTimeout, RQueueError
from rqueue.store.call import Call
from rqueue.wire import Wire

R = TypeVar("R")

TRIES = 4
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


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
        failures = 0
        while True:
            wire = self._wire()
            try:
                return wire.run(call, queue=queue)
            except (ConnectionLost, RedisTimeout):
                failures += 1
                if failures == TRIES:
                    raise
                # the first repeat comes at once: most often the server closed an idle connection
                if failures > 1:
                    pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**failures)
                    time.sleep(pause * random.uniform(0.5, 1))
            except RQueueError:
                raise
            except BaseException:
                # interrupted in the middle: a reply that nobody waits for may still come
                wire.close()
                raise

    def close(self) -> None:
        """Close the wires of all threads; the next call opens a new one."""
        for wire in list(self._all):
            wire.close()

    def _wire(self) -> Wire:
        mine = self._mine
        if getattr(mine, "pid", None) != os.getpid():
            # a forked child must not write into its parent's connection
            mine.wire = Wire(self._client, self._timeout)
            mine.pid = os.getpid()
            self._all.add(mine.wire)
        wire: Wire = mine.wire
        return wire
