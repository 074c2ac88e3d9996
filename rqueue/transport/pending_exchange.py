"""A script call whose reply is read when it is there, by who has other things to see to."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from redis import exceptions as rx

from rqueue.protocol.call import ScriptCall
from rqueue.protocol.exchange import Exchange
from rqueue.transport.connection import Connection

__all__ = ["PendingExchange", "PendingPing"]

R = TypeVar("R")


class PendingExchange(Generic[R]):
    """One call over a connection that carries no other until it is answered. queue, consumer: for
    the messages of errors."""

    def __init__(
        self, connection: Connection, call: ScriptCall[R], queue: str = "", consumer: str = ""
    ) -> None:
        self._connection = connection
        self._exchange = Exchange(call, queue, consumer)
        self.answer: R
        """What the script said, once `read` has returned True."""

    def send(self) -> None:
        """Send it. Raises the server errors."""
        self._connection.send(self._exchange.command)

    def read(self) -> bool:
        """Read the reply that is there. Whether it is the answer: False where the call is to be
        sent again, since the server did not know the script, or to another one, to which the
        connection is not made yet. Raises the tree of `rqueue.errors`."""
        exchange = self._exchange
        try:
            reply = self._connection.read()
        except rx.ResponseError as said:
            if (refusal := self._connection.refused(exchange, said)) is not None:
                raise refusal from said
            return False
        if exchange.goes_on(reply):
            return False
        self.answer = exchange.answered(reply)
        return True


class PendingPing:
    """A PING instead: whether the server still answers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.answer: Any = None

    def send(self) -> None:
        """As `PendingExchange.send`."""
        self._connection.send(("PING",))

    def read(self) -> bool:
        """As `PendingExchange.read`: always the answer."""
        try:
            self.answer = self._connection.read()
        except rx.ResponseError as said:
            raise self._connection.meant(said) from said
        return True
