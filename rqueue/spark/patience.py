"""Calls that are repeated while Redis cannot be used: of sources, which only look, and of sinks,
whose writes may be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import redis

from rqueue.errors import RedisUnavailable
from rqueue.protocol.call import CommandCall, ScriptCall
from rqueue.protocol.put_buffer import backoff
from rqueue.transport.key_scan import queue_names
from rqueue.transport.redis_client import execute, execute_all

__all__ = ["Reader", "patiently"]

R = TypeVar("R")


def patiently(action: Callable[[], R], seconds: float) -> R:
    """Do it; while Redis cannot be used, repeat it for so many seconds. Raises what it fails with
    then."""
    end = time.monotonic() + seconds
    attempt = 0
    while True:
        try:
            return action()
        except RedisUnavailable:
            attempt += 1
            pause = backoff(attempt)
            if time.monotonic() + pause > end:
                raise
            time.sleep(pause)


@dataclass(frozen=True, slots=True)
class Reader:
    """A client that only looks. Each call waits for a Redis that is away, `patience` seconds."""

    client: redis.Redis
    patience: float = 0.0

    def run(self, call: ScriptCall[R] | CommandCall[R], *, queue: str = "") -> R:
        """The reply of a call. Raises the tree of `rqueue.errors`."""
        return patiently(lambda: execute(self.client, call, queue=queue), self.patience)

    def run_all(self, calls: Sequence[CommandCall[R]]) -> list[R]:
        """The replies of Redis's own commands. Raises the tree of `rqueue.errors`."""
        return patiently(lambda: execute_all(self.client, calls), self.patience)

    def queue_names(self, namespace: str) -> list[str]:
        """The queues of a namespace. Raises the tree of `rqueue.errors`."""
        return patiently(lambda: queue_names(self.client, namespace), self.patience)
