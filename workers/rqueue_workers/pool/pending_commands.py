"""What the supervisor has Redis do, one call after another, without ever waiting for an answer.

While Redis hangs or is gone the supervisor still hears signals, reaps its children and enforces
time limits; what it had to say is said when Redis is back.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from redis import exceptions as rx

from rqueue.errors import QueueDamaged, RedisTimeout, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.protocol.commands import ScriptCall
from rqueue.protocol.exchange import Exchange
from rqueue.transport.connection import Connection
from rqueue.transport.lease_renewer import RenewalPace

log = logger("rqueue.pool")


class PendingCommand(Protocol):
    """One thing to be done in one queue."""

    queue: str

    def call(self) -> ScriptCall[Any] | None:
        """What to send now; None when it has become needless."""

    def answered(self, reply: Any) -> bool:
        """Hear the answer; True when there is more of the same to do."""

    def refused(self, error: RQueueError) -> None:
        """Hear that the script refused: it will not be tried again."""


class PendingCommands:
    """The list of what is to be done, and the one connection that it goes through.

    pace: how soon a server that is gone is tried again. answer_within: seconds until a call without
    an answer counts as lost; no longer than the pace of renewals allows. The supervisor calls
    `step` whenever `socket` is readable or `wake_at` has come.
    """

    def __init__(self, connection: Connection, pace: RenewalPace, answer_within: float) -> None:
        self._connection = connection
        self._pace = pace
        self._answer_within = min(answer_within, pace.answer_within)
        self._todo: deque[PendingCommand] = deque()
        self._sent: tuple[PendingCommand, Exchange[Any]] | None = None
        self._sent_at = 0.0
        self._retry_at = 0.0
        self._gone_at: float | None = None

    def add(self, pending: PendingCommand, *, first: bool = False) -> None:
        """Put it on the list; one that is there already is not put there twice."""
        if pending in self._todo:
            return
        if first:
            self._todo.appendleft(pending)
        else:
            self._todo.append(pending)

    @property
    def idle(self) -> bool:
        """Whether everything is done."""
        return self._sent is None and not self._todo

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
            return self._sent_at + self._answer_within
        return self._retry_at if self._todo else None

    def close(self) -> None:
        """Drop the connection. In a forked child too: the supervisor's own stays as it is."""
        self._connection.close()

    def step(self, now: float, readable: bool) -> None:
        """Read the answer if there is one, and send the next call."""
        if self._sent is not None:
            if readable:
                self._read(now)
            elif now >= self._sent_at + self._answer_within:
                self._connection.close()
                self._lost(RedisTimeout(f"no answer in {self._answer_within:g} s"), now)
        while self._sent is None and self._todo and now >= self._retry_at:
            pending = self._todo.popleft()
            call = pending.call()
            if call is not None:
                self._send(pending, Exchange(call, pending.queue), now)

    def _send(self, pending: PendingCommand, exchange: Exchange[Any], now: float) -> None:
        self._sent, self._sent_at = (pending, exchange), now
        try:
            self._connection.send(exchange.command())
        except ServerError as error:
            self._lost(error, now)

    def _read(self, now: float) -> None:
        assert self._sent is not None
        pending, exchange = self._sent
        try:
            reply = self._connection.read()
        except rx.ResponseError as said:
            error = self._connection.refused(exchange, said)
            if error is None:
                self._send(pending, exchange, now)
                return
            if isinstance(error, ServerError):
                self._lost(error, now)
                return
            self._sent = None
            self._found(now)
            assert isinstance(error, RQueueError)
            pending.refused(error)
            return
        except ServerError as error:
            self._lost(error, now)
            return
        if exchange.goes_on(reply):
            self._send(pending, exchange, now)
            return
        self._sent = None
        self._found(now)
        try:
            answer = exchange.answered(reply)
        except QueueDamaged as error:
            pending.refused(error)
            return
        if pending.answered(answer):
            self._todo.append(pending)

    def _lost(self, error: Exception, now: float) -> None:
        assert self._sent is not None
        pending, self._sent = self._sent[0], None
        if pending not in self._todo:
            self._todo.appendleft(pending)
        if self._gone_at is None:
            self._gone_at = now
            log.warning("supervisor: Redis is gone: %s; waiting", error)
        self._retry_at = now + self._pace.failed()

    def _found(self, now: float) -> None:
        self._pace.succeeded()
        if self._gone_at is not None:
            log.warning("supervisor: Redis is back after %.1f s", now - self._gone_at)
            self._gone_at = None
