"""How a producer waits for room in a bounded queue: the part that needs no I/O.

An enqueue that was refused because the queue is full asks for room (`ask`) and blocks on a list of
its own (`block`), both sent at once; when it has a word there, it enqueues with its grant
(`entry`). The queue keeps that much free for it, so it is woken once and nobody overtakes it. It
says again, each slice of time, that it still waits: the turn of one that died is over then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from secrets import token_hex
from time import monotonic
from typing import Any

from rqueue.errors import QueueFull, RedisReadOnly, ServerError
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.enqueue import Accepted
from rqueue.protocol.commands.room import await_room, bytes_of, jobs_of, with_grant
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.repeats import Patience
from rqueue.protocol.result_wait import SHORTEST_WAIT_S

__all__ = ["RoomWait", "piece_of"]

SLICE_S = 5.0
"""Seconds that one blocked command lasts at the most."""

LATE_MS = 5_000
"""How late a producer may be to say again that it waits."""


def piece_of(full: QueueFull, sizes: Sequence[int]) -> int:
    """How many of the first jobs, of these bytes each, fit at once into a queue with this limit
    that has fallen to its mark, as it is mostly configured; at least one."""
    count = max(1, full.limit // 5) if full.limit else len(sizes)
    if full.limit_bytes:
        left = full.limit_bytes // 5
        for index, size in enumerate(sizes[:count]):
            left -= size
            if left < 0:
                return max(1, index)
    return count


class RoomWait:
    """One producer's wait to send `call`, for at most `max_wait` seconds. `full`: how the queue
    refused it. patience: seconds that a reply may take."""

    __slots__ = (
        "_asked",
        "_began",
        "_bytes",
        "_call",
        "_jobs",
        "_keys",
        "_patience",
        "_slice",
        "full",
        "max_wait",
        "over",
        "producer",
    )  # fmt: skip

    def __init__(
        self,
        keys: QueueKeys,
        call: ScriptCall[Accepted],
        full: QueueFull,
        max_wait: float,
        patience: float | None,
    ) -> None:
        self.producer = token_hex(8)
        self.full = full
        self.max_wait = max_wait
        self.over = False
        """Whether nothing is kept for this producer any more, and its turn is over."""
        self._keys = keys
        self._call = call
        self._jobs = jobs_of(call)
        self._bytes = bytes_of(call)
        self._asked = False
        self._began = monotonic()
        self._slice = SLICE_S if patience is None else min(SLICE_S, patience * 0.6)
        self._patience = Patience()
        self.refused(full)

    @property
    def left(self) -> float:
        """Seconds until it gives up."""
        return self._began + self.max_wait - monotonic()

    def refused(self, full: QueueFull) -> None:
        """It is full, or full again. Raises that where it is not to be waited for, or the time is
        over."""
        self.full = full
        if not full.waits or full.never or self.left <= 0:
            raise full.after(monotonic() - self._began) if self._asked else full

    def ask(self) -> ScriptCall[str]:
        """The call that says that it waits."""
        self._asked = True
        lasts = round(self._pause() * 1000) + LATE_MS
        return await_room(self._keys, self.producer, self._jobs, lasts, self._bytes)

    def block(self) -> tuple[str | float, ...]:
        """The command that blocks until it may have room."""
        return "BLPOP", self._keys.room(self.producer), self._pause()

    def _pause(self) -> float:
        return max(SHORTEST_WAIT_S, min(self.left, self._slice))

    def may_enter(self, state: str, word: Any) -> bool:
        """Whether to enqueue now, from both answers. Raises QueueFull when the time is over."""
        if isinstance(word, Exception):
            if not isinstance(word, RedisReadOnly):
                raise word
            word = None
        if word is None and state != "free":
            self.refused(self.full)
            return False
        return True

    def entry(self) -> ScriptCall[Accepted]:
        """The enqueue, with what is kept for it."""
        return with_grant(self._call, self.producer)

    def entered(self, answer: Accepted) -> Accepted:
        """It was accepted. Where all was known already, its grant is not used."""
        self.over = answer.accepted > 0
        return answer

    def give_up(self) -> ScriptCall[str]:
        """The call that says that it does not wait any more."""
        return await_room(self._keys, self.producer, self._jobs, 0)

    def pause(self, error: ServerError) -> float:
        """Seconds until it may ask anew after a failure. Raises the server error where that is of
        no use."""
        return self._patience.pause(error, self.left if self.max_wait < math.inf else math.inf)
