"""A queue that is driven by its scripts alone, without a program around it: what Redis spends in
them, by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from benchmarks.lab.bench import Bench
from benchmarks.lab.server import usage
from rqueue.model.selector import Selector
from rqueue.protocol import commands
from rqueue.protocol.commands import ScriptCall, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.transport.connection import Connection

R = TypeVar("R")

LEASE_MS = 24 * 3_600_000
"""Longer than any row takes: nobody renews."""


class Spent:
    """What a step has spent."""

    us = 0.0
    """Microseconds in scripts, all they called included; known when the step is over."""


class ScriptQueue:
    """A queue, and the one connection over which its scripts are called."""

    def __init__(self, bench: Bench, connection: Connection, keys: QueueKeys) -> None:
        self._redis = bench.redis
        self._connection = connection
        self.keys = keys

    def run(self, call: ScriptCall[R]) -> R:
        """Call a script."""
        return self._connection.run(call)

    def register(self, name: str, window: Window, select: Selector | None = None) -> str:
        """A consumer of this name; returns its term."""
        call = commands.register(self.keys, name, window=window, lease_ms=LEASE_MS, select=select)
        return self.run(call).term

    def later(self, ms: int) -> None:
        """The queue's clock goes on by so much."""
        self._redis.hincrby(self.keys.meta, "clock", ms)

    @contextmanager
    def timed(self) -> Iterator[Spent]:
        """Of the scripts that are called meanwhile, in this queue or another of the server."""
        spent, before = Spent(), usage(self._redis)
        yield spent
        spent.us = usage(self._redis).since(before).script_us


@contextmanager
def script_queues(bench: Bench, kinds: Mapping[str, Kind]) -> Iterator[dict[str, ScriptQueue]]:
    """Empty queues of these kinds, by their names, on a server that has nothing else."""
    bench.empty()
    connection = Connection(bench.redis, timeout=120)
    try:
        queues = {
            name: ScriptQueue(bench, connection, QueueKeys(f"{QUEUE}{at}"))
            for at, name in enumerate(kinds)
        }
        for name, queue in queues.items():
            queue.run(commands.configure(queue.keys, {"v": kinds[name].stamp}))
        yield queues
    finally:
        connection.close()


@contextmanager
def script_queue(bench: Bench, kind: Kind = PLAIN, **options: int) -> Iterator[ScriptQueue]:
    """An empty queue of this kind, with these options, on a server that has nothing else."""
    bench.empty()
    connection = Connection(bench.redis, timeout=120)
    keys = QueueKeys(QUEUE)
    try:
        queue = ScriptQueue(bench, connection, keys)
        queue.run(commands.configure(keys, {"v": kind.stamp, **options}))
        yield queue
    finally:
        connection.close()


QUEUE = "bench"
