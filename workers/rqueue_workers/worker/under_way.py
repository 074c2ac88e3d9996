"""Calls under way to one queue of several, each on a node of its own: nobody waits for a reply
while another queue has something to do, nor for a connection, nor for a report that is just being
sent."""

from __future__ import annotations

from time import monotonic
from typing import Any

from rqueue.errors import RedisTimeout, RQueueError, ServerError
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.course import Calls, Course
from rqueue.protocol.keys import queue_of
from rqueue.transport.connection import Connection
from rqueue.transport.knock import LOOK_S, SILENT_S, AnyKnock
from rqueue.transport.pending_exchange import PendingExchange
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.target_calls import TargetCalls

ANSWER_S = 2.0
"""Seconds after which a node of a cluster that has not answered counts as gone."""

HURRIED_S = 0.25
"""The same, where another one may have taken its place already."""

BRIEF_S = 0.002
"""Seconds that an answer of such a node is waited for, before other queues are seen to meanwhile:
nearly all come sooner."""


class UnderWay:
    """A course of calls of one consumer, which begins with the first `go_on`. Before a connection
    is made, the node has to answer a knock. targets: leads to the queue, and to those to which its
    jobs are sent on. reporter: sends nothing meanwhile, where these calls settle jobs: what they
    report arrives before their ends."""

    def __init__(
        self,
        calls: Calls[None],
        consumer: ConsumerState,
        targets: TargetCalls,
        reporter: Reporter | None = None,
    ) -> None:
        self._calls = calls
        self._consumer = consumer
        self._targets = targets
        self._reporter = reporter
        self._course: Course[ScriptCall[Any], None] | None = None
        """None until it may begin."""
        self._paused = False
        self._knock: AnyKnock | None = None
        self._way: Connection
        self._exchange: PendingExchange[Any] | None = None
        """Of the call that is to be answered; None while it was not sent."""
        self.look_at = 0.0
        """When there is something to do at the latest, by monotonic time."""

    @property
    def over(self) -> bool:
        """Whether all is done."""
        return self._course is not None and self._course.call is None

    @property
    def socket(self) -> Any:
        """What becomes readable when there is a reply; None while nothing was sent."""
        return self._way.socket if self._awaits else None

    @property
    def _awaits(self) -> bool:
        return self._course is not None and self._knock is None

    def stirs(self, now: float) -> bool:
        """Whether there is something to do: a reply is there, or should be."""
        return self.over or now >= self.look_at or (self._awaits and self._way.answered())

    def hurry(self) -> None:
        """The node may be gone: what is not answered soon counts as lost."""
        self.look_at = min(self.look_at, monotonic() + HURRIED_S)

    def go_on(self, within: float = 0.0) -> bool:
        """Read what is there, and send what follows. Whether all is done. Waits at most so many
        seconds, all in all. Raises what the calls come to."""
        until = monotonic() + within
        try:
            while not self.over:
                if not self._stir(max(0.0, until - monotonic())):
                    return False
        except BaseException:
            self._end()
            raise
        self._end()
        return True

    def abandon(self, error: ServerError) -> None:
        """No reply will be read any more: what was to be said is to be said still."""
        if self._course is None:
            self._calls.close()
        else:
            self._way.close()
            if self._knock is not None:
                self._knock.close()
            while not self.over:
                try:
                    self._course.refused(error)
                except ServerError:
                    break
        self._end()

    def _end(self) -> None:
        if self._paused and self._reporter is not None:
            self._paused = False
            self._reporter.resume()

    def _begin(self, within: float) -> bool:
        """Begin, unless a report is just being sent; whether that was done."""
        if self._reporter is not None:
            self._paused = self._reporter.pause(within)
            if not self._paused:
                self.look_at = monotonic() + LOOK_S
                return False
        self._course = Course(self._calls)
        self._send()
        return True

    def _stir(self, within: float) -> bool:
        """Go on by one reply; whether one was there."""
        if self._course is None:
            return self._begin(within)
        if self._knock is not None:
            return self._wait_at_door(self._knock, within)
        if not self._way.answered(within):
            if monotonic() < self.look_at:
                return False
            self._fail(self._way.overdue())
            return True
        assert self._exchange is not None
        try:
            done = self._exchange.read()
        except RQueueError as error:
            self._fail(error)
            return True
        if done:
            self._course.answered(self._exchange.answer)
            self._send()
        else:
            self._lead()  # it may be another node that is to be asked now
        return True

    def _wait_at_door(self, knock: AnyKnock, within: float) -> bool:
        try:
            answered = knock.answered(within)
        except RQueueError as error:
            self._fail(error)
            return True
        if answered is None:
            self.look_at = monotonic() + LOOK_S
            return False
        self._knock = None
        if answered:
            self._say()
        else:
            self._fail(RedisTimeout(f"no answer in {SILENT_S:g} s", url=self._way.url))
        return True

    def _send(self) -> None:
        """Send the next call, if there is one."""
        if self.over:
            return
        call = self._call
        self._exchange = None
        try:
            self._way = self._targets.way(call)
        except RQueueError as error:
            self._fail(error)
            return
        self._lead()

    def _lead(self) -> None:
        """Send the call, or knock first."""
        try:
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
        try:
            if self._exchange is None:
                self._exchange = PendingExchange(self._way, call, queue_of(call.key), consumer)
            self._exchange.send()
        except RQueueError as error:
            self._fail(error)
        else:
            self.look_at = monotonic() + ANSWER_S

    def _fail(self, error: Exception) -> None:
        """The call has failed: what comes next is sent. Raises the error where nothing does."""
        self._knock = None
        if isinstance(error, ServerError) and not self._own(self._call):
            error = self._targets.lost(self._call, error)
        assert self._course is not None
        self._course.refused(error)
        self._send()

    @property
    def _call(self) -> ScriptCall[Any]:
        assert self._course is not None and self._course.call is not None
        return self._course.call

    def _own(self, call: ScriptCall[Any]) -> bool:
        return call.key == self._consumer.keys.meta
