"""Calls under way to one queue of several, each on a node of its own: nobody waits for a reply
while another queue has something to do."""

from __future__ import annotations

from time import monotonic
from typing import Any

from rqueue.errors import RedisTimeout, RQueueError, ServerError
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.course import Calls, Course
from rqueue.protocol.keys import queue_of
from rqueue.transport.connection import Connection
from rqueue.transport.knock import LOOK_S, SILENT_S, Knock
from rqueue.transport.pending_exchange import PendingExchange
from rqueue_workers.worker.target_calls import TargetCalls

ANSWER_S = 2.0
"""Seconds after which a node of a cluster that has not answered counts as gone."""

HURRIED_S = 0.25
"""The same, where another one may have taken its place already."""

BRIEF_S = 0.002
"""Seconds that an answer of such a node is waited for, before other queues are seen to meanwhile:
nearly all come sooner."""


class UnderWay:
    """A course of calls of one consumer. Before a connection is made, the node has to answer a
    knock. targets: leads to the queue, and to those to which its jobs are sent on."""

    def __init__(self, calls: Calls[None], consumer: ConsumerState, targets: TargetCalls) -> None:
        self._consumer = consumer
        self._targets = targets
        self._course = Course(calls)
        self._knock: Knock | None = None
        self._way: Connection
        self._exchange: PendingExchange[Any]
        self.look_at = 0.0
        """When there is something to do at the latest, by monotonic time."""
        self._send()

    @property
    def over(self) -> bool:
        """Whether all is done."""
        return self._course.call is None

    @property
    def socket(self) -> Any:
        """What becomes readable when there is a reply; None while a knock is not answered."""
        return None if self._knock is not None else self._way.socket

    def stirs(self, now: float) -> bool:
        """Whether there is something to do: a reply is there, or should be."""
        return self.over or now >= self.look_at or (self._knock is None and self._way.answered())

    def hurry(self) -> None:
        """The node may be gone: what is not answered soon counts as lost."""
        self.look_at = min(self.look_at, monotonic() + HURRIED_S)

    def go_on(self, within: float = 0.0) -> bool:
        """Read what is there, and send what follows. Whether all is done. Waits at most so many
        seconds, all in all. Raises what the calls come to."""
        until = monotonic() + within
        while not self.over:
            if not self._stir(max(0.0, until - monotonic())):
                return False
        return True

    def abandon(self, error: ServerError) -> None:
        """No reply will be read any more: what was to be said is to be said still."""
        self._way.close()
        if self._knock is not None:
            self._knock.close()
        while not self.over:
            try:
                self._course.refused(error)
            except ServerError:
                break

    def _stir(self, within: float) -> bool:
        """Go on by one reply; whether one was there."""
        if self._knock is not None:
            answered = self._knock.answered(within)
            if answered is None:
                self.look_at = monotonic() + LOOK_S
                return False
            self._knock = None
            if answered:
                self._say()
            else:
                self._fail(RedisTimeout(f"no answer in {SILENT_S:g} s", url=self._way.url))
            return True
        if not self._way.answered(within):
            if monotonic() < self.look_at:
                return False
            self._fail(self._way.overdue())
            return True
        try:
            done = self._exchange.read()
        except RQueueError as error:
            self._fail(error)
            return True
        self.look_at = monotonic() + ANSWER_S
        if done:
            self._course.answered(self._exchange.answer)
            self._send()
        return True

    def _send(self) -> None:
        """Send the next call, if there is one, or knock first."""
        call = self._course.call
        if call is None:
            return
        try:
            self._way = self._targets.way(call)
            self._knock = None if self._way.connected else self._way.knock()
        except RQueueError as error:
            self._fail(error)
            return
        if self._knock is not None:
            self.look_at = monotonic() + LOOK_S
        else:
            self._say()

    def _say(self) -> None:
        call = self._call
        consumer = self._consumer.name if self._own(call) else ""
        self._exchange = PendingExchange(self._way, call, queue_of(call.key), consumer)
        try:
            self._exchange.send()
        except RQueueError as error:
            self._fail(error)
        else:
            self.look_at = monotonic() + ANSWER_S

    def _fail(self, error: Exception) -> None:
        """The call has failed: what comes next is sent. Raises the error where nothing does."""
        if isinstance(error, ServerError) and not self._own(self._call):
            error = self._targets.lost(self._call, error)
        self._course.refused(error)
        self._send()

    @property
    def _call(self) -> ScriptCall[Any]:
        assert self._course.call is not None
        return self._course.call

    def _own(self, call: ScriptCall[Any]) -> bool:
        return call.key == self._consumer.keys.meta
