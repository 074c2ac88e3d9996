# Generated from rqueue/client/_async/shard_steps.py (`make generate`): do not edit.
"""The steps by which jobs that are enqueued together go into their shards."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from math import ceil
from typing import Any, NamedTuple

from rqueue.client._sync.spread_batch import SpreadBatch
from rqueue.errors import QueueFull, RedisUnavailable, RQueueError, ShardsChanged
from rqueue.protocol.commands.enqueue import BATCH
from rqueue.protocol.job_packer import Batch

__all__ = ["STEP_MOST", "ShardSteps", "Step", "even"]

STEP_MOST = BATCH * 5 // 4
"""Jobs that a shard gets in one step at the most: chance gives it some more than its part of those
that are sorted together."""


class Step(NamedTuple):
    """Jobs that go into one shard together. queue: that shard's. places: theirs, among all."""

    queue: Any
    places: Sequence[int]
    batch: Batch


class ShardSteps:
    """The steps of one batch, each shard's in their order. At each server one is under way, so that
    all servers are busy at once; those that one server has to do follow one another."""

    def __init__(self, steps: Iterable[Step], spread: SpreadBatch) -> None:
        self._spread = spread
        self._waiting: dict[Hashable, deque[Step]] = {}  # by their servers
        for step in steps:
            self._waiting.setdefault(step.queue.server, deque()).append(step)
        self._sent: dict[Hashable, tuple[Step, Any]] = {}
        self._failed: list[tuple[Step, RQueueError]] = []
        self._changed: set[str] = set()
        """Shards that go by another table: what follows goes behind what they have refused."""
        self._refused = False

    def begin(self) -> None:
        """Send the first step of each server, and do not wait."""
        try:
            for server in self._waiting:
                self._send_next(server)
        except BaseException:
            self._drop()
            raise

    def finish(self) -> None:
        """Wait for what is sent, and do the rest. The jobs that are stored, or known, are in the
        batch then. Raises what the first step said that was refused: no later one is sent, and the
        batch says which jobs those were. Only where all others are done it raises ShardsChanged."""
        try:
            while self._sent:
                server = next(iter(self._sent))
                step, flight = self._sent.pop(server)
                try:
                    stored = step.queue.finish_here(step.batch, flight, self._spread.max_wait)
                except RQueueError as error:
                    self._fails(step, error)
                else:
                    self._spread.store(step.places, stored)
                self._send_next(server)
        finally:
            self._drop()
        self._raise()

    def _drop(self) -> None:
        """Interrupted: nobody waits for what is sent."""
        for step, flight in self._sent.values():
            step.queue.drop(flight)

    def _send_next(self, server: Hashable) -> None:
        steps = self._waiting[server]
        while steps and not self._refused:
            step = steps.popleft()
            if step.queue.name in self._changed:
                continue
            try:
                flight = step.queue.begin_here(step.batch)
            except RQueueError as error:
                self._fails(step, error)
            else:
                self._sent[server] = step, flight
                return

    def _fails(self, step: Step, error: RQueueError) -> None:
        self._failed.append((step, error))
        if isinstance(error, ShardsChanged):
            self._changed.add(step.queue.name)
        else:
            self._refused = True

    def _raise(self) -> None:
        """Raise what went wrong; of several things what weighs most, and the batch knows of the
        others whether they may have been done."""
        if not self._failed:
            return
        failed = sorted(self._failed, key=lambda one: _weight(one[1]))
        first, error = failed[0]
        unclear = _weight(error) == UNCLEAR
        self._spread.failed = [
            place
            for step, its in failed
            if step is first or (unclear and _weight(its) == UNCLEAR)
            for place in step.places
        ]
        for step, its in failed[1:]:
            if not isinstance(its, ShardsChanged | QueueFull):
                self._spread.doubt(step.places)
        raise error


def even(places: list[int]) -> list[list[int]]:
    """The jobs of one shard, in as few steps as may be, of one size."""
    if len(places) <= STEP_MOST:
        return [places]
    size = ceil(len(places) / ceil(len(places) / STEP_MOST))
    return [places[start : start + size] for start in range(0, len(places), size)]


UNCLEAR, REFUSED, CHANGED = 0, 1, 2


def _weight(error: RQueueError) -> int:
    """Of several errors the least one is raised: first where nobody knows whether the jobs are
    stored, last where they only have to be sent elsewhere."""
    if isinstance(error, RedisUnavailable) and error.outcome_unknown:
        return UNCLEAR
    return CHANGED if isinstance(error, ShardsChanged) else REFUSED
