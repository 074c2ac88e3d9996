# Generated from rqueue/client/_async/groups.py (`make generate`): do not edit.
"""The sticky groups of a queue."""

from __future__ import annotations

from rqueue.client._sync.queue_calls import QueueCalls
from rqueue.model.names import check_group
from rqueue.protocol import commands

__all__ = ["Groups"]


class Groups:
    """`queue.groups`. With `configure(sticky=...)` a group is its consumer's (Q-64)."""

    def __init__(self, queue: QueueCalls) -> None:
        self._queue = queue

    def owner(self, group: str) -> str:
        """The name of the consumer that gets the jobs of this group; "" where it is nobody's, and
        in a queue without sticky groups. Raises InvalidName."""
        return self._ask(group, reset=False)

    def reset(self, group: str) -> str:
        """The consumer that takes the next job of this group owns it from then on, with all groups
        of its bucket; returns the name of the one that did until now, or "". What that one holds
        goes before the rest of the group. Raises InvalidName."""
        return self._ask(group, reset=True)

    def _ask(self, group: str, *, reset: bool) -> str:
        call = commands.group_owner(self._queue.keys, check_group(group), reset=reset)
        return (self._queue._run_here(call)).owner
