# Generated from rqueue/client/_async/queue_sharder.py (`make generate`): do not edit.
"""One name for several queues, over which jobs are spread."""

from __future__ import annotations

import random
from time import monotonic

from rqueue.client._sync.alternate_links import configure_with_targets
from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError
from rqueue.model.expect import expect_number, shown
from rqueue.protocol import commands
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.policies import alternate
from rqueue.protocol.queue_options import LIMITS

__all__ = ["QueueSharder"]

SHARDS_MAX = 1000

TARGETS = alternate.POLICY.names
"""Options that are names of queues."""


class QueueSharder:
    """Spreads jobs over a queue and others like it, `mail`, `mail-2`, `mail-3`, ... (C-28): where
    one queue is as long as it should be, or one server of a cluster is as busy.

    queue: the first of them. threshold: waiting jobs from which on a queue gets no further ones
    until it is half as long. most: queues at the most. check: seconds between two looks, each made
    by a call of `pick`. A queue is added where one has reached the threshold, with the options of
    the first; none is ever taken away. Any number of sharders of one name agree, as the names are
    given. Order holds within each queue, ids and groups count within each, and workers have to
    serve all of them. Raises ConfigError.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        threshold: int = 10_000,
        most: int = 10,
        check: float = 30.0,
    ) -> None:
        for name, value, limit in (("threshold", threshold, 10**9), ("most", most, SHARDS_MAX)):
            if type(value) is not int or not 1 <= value <= limit:
                raise ConfigError(name, f"{shown(value)} is no whole number from 1 to {limit}")
        expect_number("check", check, "a number of seconds")
        self._queue = queue
        self._threshold = threshold
        self._most = most
        self._check = check
        self._next = 0.0
        self._names: list[str] = []
        self._preferred: set[str] = set()

    @property
    def possible(self) -> list[str]:
        """The names of all queues that there may be: for those who serve them."""
        first = self._queue.name
        return [first, *(f"{first}-{number}" for number in range(2, self._most + 1))]

    def names(self) -> list[str]:
        """The queues that there are now."""
        self._look()
        return list(self._names)

    def pick(self) -> Queue:
        """A queue for the next jobs: any of those that are short enough, else any."""
        if not self._names or monotonic() >= self._next:
            self._look()
        preferred = [name for name in self._names if name in self._preferred]
        return self._queue.at(random.choice(preferred or self._names))

    def _look(self) -> None:
        """See how long the queues are, and add one where one is too long."""
        names: list[str] = []
        options: dict[str, int | str] = {}
        long = False
        for name in self.possible:
            shard = self._queue.at(name)
            counts = shard._run(commands.counts(shard.keys, oldest=False))
            there = is_there(counts)
            if not names:
                options = _options(counts.meta)
            elif not there:
                break
            names.append(name)
            long = self._is_long(name, counts) or long
        if long and len(names) < self._most:
            added = self.possible[len(names)]
            self._add(added, options)
            names.append(added)
            self._preferred.add(added)
        self._names = names
        self._next = monotonic() + self._check

    def _is_long(self, name: str, counts: commands.Counts) -> bool:
        size = counts.ready + counts.blocked + counts.scheduled
        if size >= self._threshold:
            self._preferred.discard(name)
        elif size <= self._threshold // 2 or name not in self._names:
            self._preferred.add(name)
        return size >= self._threshold

    def _add(self, name: str, options: dict[str, int | str]) -> None:
        shard = self._queue.at(name)
        if options.keys() & set(TARGETS):
            configure_with_targets(shard, options)
        else:
            shard._run(commands.configure(shard.keys, options))


def _options(meta: dict[str, str]) -> dict[str, int | str]:
    """What a queue like this one is configured with; one that says nothing of itself has ten
    levels, as all have."""
    options: dict[str, int | str] = {
        name: int(meta[name]) for name in LIMITS if meta.get(name, "").lstrip("-").isdigit()
    }
    options |= {name: meta[name] for name in TARGETS if meta.get(name)}
    return {"priorities": 10, **options}
