"""What the supervisor has one Redis do, one call after another, without ever waiting for an answer.

While Redis hangs or is gone the supervisor still hears signals, reaps its children and enforces
time limits; what it had to say is said when Redis is back.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from rqueue.errors import RedisTimeout, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.protocol.commands import ScriptCall
from rqueue.protocol.forwarding import PendingForward, TargetAway
from rqueue.protocol.server_clock import ServerClock
from rqueue.transport.connection import Connection
from rqueue.transport.knock import LOOK_S, SILENT_S, AnyKnock
from rqueue.transport.lease_renewer import RenewalPace
from rqueue.transport.pending_exchange import PendingExchange, PendingPing
from rqueue_workers.outage_log import OutageLog

log = logger("rqueue.pool")


class PendingCommand(Protocol):
    """One thing to be done."""

    @property
    def queue(self) -> str:
        """The queue that `call` is for now."""

    def call(self) -> ScriptCall[Any] | None:
        """What to send now; None when it has become needless."""

    def answered(self, reply: Any) -> bool:
        """Hear the answer; True when there is more of the same to do."""

    def refused(self, error: RQueueError) -> None:
        """Hear that the script refused: it will not be tried again."""


class Probe:
    """Whether Redis still answers: a server that hangs, or whose host has vanished, is to be
    noticed before jobs come to the one that takes its place."""

    queue = ""

    def call(self) -> None:
        """No script: the list sends it by itself."""

    def answered(self, _reply: Any) -> bool:
        """It does."""
        return False

    def refused(self, _error: RQueueError) -> None:
        """It does."""


class PendingCommands:
    """The list of what is to be done, and the one connection that it goes through.

    pace: how soon a server that is gone is tried again. answer_within: seconds until a call without
    an answer counts as lost; no longer than the pace of renewals allows. of: the queue that they
    are for, where others are elsewhere. replaceable: another server may take the place of this one,
    which is probed while there is nothing to be said. The supervisor calls `step` whenever `socket`
    is readable or `wake_at` has come.
    """

    def __init__(
        self,
        connection: Connection,
        pace: RenewalPace,
        answer_within: float,
        of: str = "",
        *,
        replaceable: bool = False,
    ) -> None:
        self._connection = connection
        self._pace = pace
        self._answer_within = min(answer_within, pace.answer_within)
        self._probe = Probe()
        self._probe_every = pace.probe_every if replaceable else 0.0
        self._heard_at = 0.0
        self._todo: deque[PendingCommand] = deque()
        self._sent: tuple[PendingCommand, PendingExchange[Any] | PendingPing] | None = None
        self._sent_at = 0.0
        self._again: tuple[PendingCommand, PendingExchange[Any]] | None = None
        """A call that another node is to be asked, and what it was for."""
        self._retry_at = 0.0
        self._knock: AnyKnock | None = None
        self._look_at = 0.0
        """When it is to be seen whether the knock was answered; 0.0 = there is none."""
        self._gone_at: float | None = None
        self.clock = ServerClock(round((time.time() - time.monotonic()) * 1000))
        """Of this Redis."""
        self._alone = not of
        self._lines = OutageLog(log, "supervisor", of)
        self.again: Callable[[PendingCommand], None] = self.add
        """Puts on a list what is not done with one answer: it may go on in another queue."""
        self._silent = False
        self.found_again: Callable[[], None] = lambda: None
        """Called where Redis was silent, and it, or another one in its place, answers now."""

    def add(self, pending: PendingCommand, *, first: bool = False) -> None:
        """Put it on the list; one that is there already is not put there twice."""
        if pending in self._todo or (self.gone and self._goes_without(pending)):
            return
        if first:
            self._todo.appendleft(pending)
        else:
            self._todo.append(pending)

    @property
    def idle(self) -> bool:
        """Whether everything is done."""
        sent = () if self._sent is None else (self._sent[0],)
        return all(pending is self._probe for pending in (*sent, *self._todo))

    def holds(self, kind: type[PendingCommand]) -> bool:
        """Whether one of this kind is still to be done, or its answer is on its way."""
        sent = () if self._sent is None else (self._sent[0],)
        return any(isinstance(pending, kind) for pending in (*sent, *self._todo))

    @property
    def gone(self) -> bool:
        """Whether Redis cannot be used at the moment."""
        return self._gone_at is not None

    @property
    def socket(self) -> Any:
        """What to watch for an answer; None when none is on its way."""
        return self._connection.socket if self._sent is not None else None

    @property
    def wake_at(self) -> float | None:
        """When `step` has something to do at the latest, by `time.monotonic()`."""
        if self._sent is not None:
            return self._sent_at + self._patience
        if self._todo:
            return self._look_at or self._retry_at
        return self._heard_at + self._probe_every if self._probes else None

    @property
    def _probes(self) -> bool:
        """Whether a server to which nothing is said is to be probed."""
        return bool(self._probe_every) and self._connection.connected

    @property
    def _patience(self) -> float:
        """Seconds that what was sent last may stay without an answer."""
        assert self._sent is not None
        return self._probe_every if self._sent[0] is self._probe else self._answer_within

    def close(self) -> None:
        """Drop the connection. In a forked child too: the supervisor's own stays as it is."""
        self._connection.close()
        if self._knock is not None:
            self._knock.close()
            self._knock = None

    def step(self, now: float, readable: bool) -> None:
        """Read the answer if there is one, and send the next call."""
        if self._sent is not None:
            if readable:
                self._read(now)
            elif now >= self._sent_at + (patience := self._patience):
                self._connection.close()
                self._lost(self._silence(patience), now)
        if self.idle and self._probes and now >= self._heard_at + self._probe_every:
            self.add(self._probe)
        away = self.gone or not self._connection.connected
        if self._todo and away and not self._answers(now):
            return
        while self._sent is None and self._todo and now >= self._retry_at:
            pending = self._todo.popleft()
            if pending is self._probe:
                self._send(pending, PendingPing(self._connection), now)
            elif self._again is not None and self._again[0] is pending:
                self._send(*self._again, now)
            elif (call := pending.call()) is not None:
                self._send(pending, PendingExchange(self._connection, call, pending.queue), now)

    def _answers(self, now: float) -> bool:
        """Whether a server that was gone, or that is to be connected to, is to be tried now. Of
        several each has to answer a knock first, which is not waited for."""
        if now < self._retry_at or self._sent is not None:
            return True
        try:
            self._knock = self._knock or self._connection.knock()
            answered = self._knock is None or self._knock.answered()
        except ServerError as error:
            self._knock, self._look_at = None, 0.0
            self._retry_at = now + self._pace.failed()
            self._turned_away(error, now)
            return False
        self._look_at = now + LOOK_S if answered is None else 0.0
        if answered is not None:
            self._knock = None
        if answered is False:
            self._turned_away(self._silence(SILENT_S), now)
        return bool(answered)

    def _silence(self, seconds: float) -> RedisTimeout:
        return RedisTimeout(f"no answer in {seconds:g} s", url=self._connection.url)

    def _turned_away(self, error: ServerError, now: float) -> None:
        """A knock was in vain."""
        self._silent |= isinstance(error, RedisTimeout)
        self._note_gone(error, now)
        if self._goes_without(self._todo[0]):
            self._todo.popleft()

    def _send(
        self, pending: PendingCommand, exchange: PendingExchange[Any] | PendingPing, now: float
    ) -> None:
        self._sent, self._sent_at = (pending, exchange), now
        self._again = None
        try:
            exchange.send()
        except ServerError as error:
            self._lost(error, now)

    def _read(self, now: float) -> None:
        assert self._sent is not None
        pending, exchange = self._sent
        try:
            if not exchange.read():
                self._send_again(pending, exchange, now)
                return
        except ServerError as error:
            self._lost(error, now)
            return
        except RQueueError as error:
            self._sent = None
            self._found(now)
            pending.refused(error)
            return
        self._sent = None
        self._found(now)
        if pending.answered(exchange.answer):
            self.again(pending)

    def _send_again(
        self, pending: PendingCommand, exchange: PendingExchange[Any] | PendingPing, now: float
    ) -> None:
        """To the same server, or to another one, which has to answer a knock first."""
        if self._connection.connected or not isinstance(exchange, PendingExchange):
            self._send(pending, exchange, now)
        else:
            self._sent = None
            self._todo.appendleft(pending)
            self._again = pending, exchange

    def _lost(self, error: Exception, now: float) -> None:
        assert self._sent is not None
        pending, self._sent = self._sent[0], None
        if pending not in self._todo and not self._goes_without(pending):
            self._todo.appendleft(pending)
        self._silent |= isinstance(error, RedisTimeout)
        self._note_gone(error, now)
        self._retry_at = now + self._pace.failed()

    def _note_gone(self, error: Exception, now: float) -> None:
        if self._gone_at is None:
            self._gone_at = now
            self._lines.begins(error, now)
        else:
            self._lines.lasts(error, now)

    def _goes_without(self, pending: PendingCommand) -> bool:
        """Whether it does not wait until this Redis is back: jobs are sent here from a queue that
        is elsewhere, and others of them go to other targets."""
        if self._alone or not isinstance(pending, PendingForward):
            return False
        if pending.source == pending.queue:
            return False
        pending.refused(TargetAway(f"queue '{pending.queue}' cannot be reached"))
        return True

    def _found(self, now: float) -> None:
        self._pace.succeeded()
        self._heard_at = now
        self._lines.known()
        if self._gone_at is not None:
            self._lines.over(now)
            self._gone_at = None
            if self._silent:
                self._silent = False
                self.found_again()
