# Generated from rqueue/client/_async/shares.py (`make generate`): do not edit.
"""The shares of a queue: who has ready jobs, and what weights they have."""

from __future__ import annotations

from rqueue.client._sync.queue_calls import QueueCalls
from rqueue.model.share import check_weight
from rqueue.protocol import commands
from rqueue.protocol.commands.shares import ShareInfo

__all__ = ["Shares"]


class Shares:
    """`queue.shares`."""

    def __init__(self, queue: QueueCalls) -> None:
        self._queue = queue

    def set(self, name: str, weight: int) -> bool:
        """Give a share this weight, 1 to 1000, from its next delivery on: one of weight 4 gets four
        jobs where one of weight 1 gets one. "*": all shares of which nothing is said; they have 1
        before. True if something was said before. Raises ConfigError, InvalidName."""
        call = commands.set_share(self._queue.keys, name, check_weight(weight))
        return self._queue._run_here(call)

    def reset(self, name: str) -> bool:
        """Forget what was said of this share: it has the weight of all others again. True if
        something was said. Raises InvalidName."""
        return self._queue._run_here(commands.set_share(self._queue.keys, name, None))

    def list(self, most: int = 1000) -> list[ShareInfo]:
        """Shares that have ready jobs, about so many of them (at most 10,000), and all that have a
        weight of their own, by name."""
        return self._queue._run_here(commands.read_shares(self._queue.keys, most))
