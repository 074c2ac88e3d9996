"""One raw connection to Redis for the protocol's hot path: no pool, no hidden retry.

A worker uses two connections: one carries its calls, the other blocks on its wake lists
(`rqueue.transport.wake_listener`). A broken connection is closed and raises; its caller decides
what was lost.
"""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import Any, TypeVar

from redis import exceptions as rx

from rqueue.errors import QueueDamaged
from rqueue.model.confirmation import Confirmation
from rqueue.protocol import confirming, scripts
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.error_mapping import moved_on, translate
from rqueue.protocol.exchange import KNOWN, Exchange
from rqueue.protocol.slots import Address
from rqueue.transport.knock import AnyKnock, Knock
from rqueue.transport.resp import Command, Framing, readable
from rqueue.transport.sentinel import sentinels_of
from rqueue.transport.socket_connection import SocketConnection

R = TypeVar("R")

Refused = rx.ResponseError | None

SLACK_S = 1.0
"""Seconds that the answer to a command which blocks may be late."""


def plain_command(call: ScriptCall[Any]) -> Command | None:
    """What is sent of a call, in nearly all cases, and its reply is all that is to be read; None
    where an `Exchange` has to say what comes when: for a queue that is, or is to become, none of
    the plain kind, for a script that has not been loaded here yet, and where the call is to be
    confirmed."""
    name, key, args, _, needs, _, confirm = call  # its fields one by one would be slower
    script = scripts.SCRIPTS.plain.get(name)
    if script is None or key in KNOWN or needs or confirm is not None:
        return None
    # `ScriptCall.keys`, written out on the way of every call
    return ("EVALSHA", script.sha, 2, key, key[:-4] + "guard", *args)


def blocks_for(command: Command) -> float:
    """Seconds that a command blocks at the most: BLMOVE and BLPOP say them last, XREAD says
    milliseconds after BLOCK; others do not block."""
    if "BLOCK" in command:
        return float(command[command.index("BLOCK") + 1]) / 1000
    return float(command[-1]) if str(command[0]).startswith("BL") else 0.0


class Connection(SocketConnection):
    """A connection made like those of `client` (same address, login, TLS), used by one thread.

    `timeout`: seconds that a reply may take; None waits for ever.
    """

    def twin(self) -> Connection:
        """Another one, made like this."""
        return Connection(self._client, self._timeout)

    def suspect(self) -> None:
        """The server may be gone without a word: drop the connection. The next one looks its
        address up."""
        self.close()

    def leading_to(self, key: str) -> Connection:
        """The connection for the calls of this key: another one where that queue is elsewhere."""
        return self

    def knock(self, key: str = "") -> AnyKnock | None:
        """Begin to find out whether a new connection would lead to a server that answers; None
        where there is nothing to be gained by it: no other server is ever in charge. key: of a
        call of another queue. Raises the server errors."""
        pool = getattr(self._client, "connection_pool", None)
        if sentinels_of(pool) is None:
            return None
        return Knock(partial(self._primary, pool), lambda _address: None)

    def _primary(self, pool: Any) -> Address:
        """Where the Sentinels say that the primary is."""
        try:
            return Address(*pool.get_master_address())
        except (rx.RedisError, OSError) as error:
            raise translate(error, url=self.url, sent=False) from error

    def _ready(self) -> Framing:
        """What carries the next command. Raises the tree of `rqueue.errors`."""
        self.connect()
        assert self._framing is not None
        return self._framing

    def send(self, *commands: Command) -> None:
        """Send commands and do not wait. Raises the tree of `rqueue.errors`."""
        framing = self._framing or self._ready()
        try:
            framing.send(*commands)
        except BaseException as error:
            self._failed(error)
            raise

    def read(self, *, blocked: bool = False) -> Any:
        """Read one reply; an error reply raises redis-py's ResponseError. blocked: that of a
        command that blocks."""
        try:
            if self._framing is None:
                raise rx.ConnectionError("Connection closed by server.")
            return self._framing.read(blocked=blocked)
        except BaseException as error:
            self._failed(error)
            raise

    def command(self, *command: Arg) -> Any:
        """Send one command and read its reply; as `send` and `read`."""
        framing = self._framing or self._ready()
        try:
            return framing.ask(command)
        except BaseException as error:
            self._failed(error)
            raise

    def run(self, call: ScriptCall[R], *, queue: str = "", consumer: str = "") -> R:
        """Run a script call. Raises the tree of `rqueue.errors`."""
        command = plain_command(call)
        if command is None:
            return self._exchanged(Exchange(call, queue, consumer))
        framing = self._framing or self._ready()
        try:
            reply = framing.ask(command)
        except rx.ResponseError as error:
            refused = error
        except BaseException as error:
            self._failed(error)
            raise
        else:
            return call.read(reply)
        return self._sent_again(Exchange(call, queue, consumer), refused)

    def _exchanged(self, exchange: Exchange[R]) -> R:
        """`run`, of a call that is more than a command and its reply."""
        confirm = exchange.call.confirm
        if confirm is not None:
            self.send(exchange.command, confirm.command)
            return self._confirmed(exchange, confirm)
        return self._sent_again(exchange, None)

    def begin(self, call: ScriptCall[Any]) -> None:
        """Send a script call and do not wait: `finish` reads its reply, before any other call."""
        confirm = call.confirm
        command = plain_command(call) or Exchange(call).command
        self.send(command, *((confirm.command,) if confirm is not None else ()))

    def answered(self, within: float = 0.0) -> bool:
        """Whether a reply, or the end of the connection, can be read; waits for it at most so many
        seconds."""
        sock = self.socket
        if sock is None or (self.unread is not None and self.unread()):
            return True
        return bool(readable([sock], within))

    def overdue(self) -> Exception:
        """The reply to what was sent is not waited for any more: the connection is closed. Returns
        the error that says so."""
        return self._broken(rx.TimeoutError("Timeout reading from socket"))

    def finish(self, call: ScriptCall[R], *, queue: str = "", consumer: str = "") -> R:
        """Read the reply of the call that was begun. Raises the tree of `rqueue.errors`."""
        if call.confirm is not None:
            return self._confirmed(Exchange(call, queue, consumer), call.confirm)
        try:
            reply = self.read()
        except rx.ResponseError as error:
            refused = error
        else:
            return Exchange(call, queue).answered(reply) if call.needs else call.read(reply)
        return self._sent_again(Exchange(call, queue, consumer), refused)

    def _sent_again(self, exchange: Exchange[R], refused: Refused) -> R:
        """The answer to a call that was refused: it is sent again where that is of use. None: it is
        sent for the first time. Raises the tree of `rqueue.errors`."""
        while True:
            if refused is not None and (refusal := self.refused(exchange, refused)) is not None:
                raise refusal from refused
            refused = None
            try:
                reply = self.command(*exchange.command)
            except rx.ResponseError as error:
                refused = error
            else:
                if not exchange.goes_on(reply):
                    return exchange.answered(reply)

    def run_then(self, call: ScriptCall[R], command: Command, *, queue: str = "") -> tuple[R, Any]:
        """Send a script call and, in the same packet, a command that blocks until what the call
        prepared happens (a result list gets its element). Returns both replies; where the second
        is refused, its reply is the error. Both are waited for until `SLACK_S` after its time."""
        self.until = monotonic() + blocks_for(command) + SLACK_S
        try:
            return self._run_then(call, command, queue)
        finally:
            self.until = None

    def _run_then(self, call: ScriptCall[R], command: Command, queue: str) -> tuple[R, Any]:
        first = plain_command(call)
        if first is None:
            exchange = Exchange(call, queue)
            self.send(exchange.command, command)
            return self._replies(exchange, command)
        framing = self._framing or self._ready()
        try:
            framing.send(first, command)
            reply = framing.read()
        except rx.ResponseError as error:
            refused = error
        except BaseException as error:
            self._failed(error)
            raise
        else:
            seen = call.read(reply)
            try:
                return seen, framing.read(blocked=True)
            except rx.ResponseError as error:
                return seen, self._refused_then(Exchange(call, queue), error)
            except BaseException as error:
                self._failed(error)
                raise
        return self._replies(Exchange(call, queue), command, refused)

    def _replies(
        self, exchange: Exchange[R], command: Command, refused: Refused = None
    ) -> tuple[R, Any]:
        """What `run_then` returns."""
        seen, reply = self._both(exchange, command, refused)
        if isinstance(reply, rx.ResponseError):
            return seen, self._refused_then(exchange, reply)
        return seen, reply

    def _both(
        self, exchange: Exchange[R], command: Command, refused: Refused = None
    ) -> tuple[R, Any]:
        """The replies to a call, which may have been refused once, and to the command behind it;
        the second may be an error. Raises the tree of `rqueue.errors`."""
        while True:
            if refused is None:
                try:
                    reply = self.read()
                except rx.ResponseError as error:
                    refused = error
                else:
                    if not (exchange.teaches and exchange.goes_on(reply)):
                        break
            if refused is not None:
                # nothing was prepared: the second command would block for nothing
                self.close()
                if (refusal := self.refused(exchange, refused)) is not None:
                    raise refusal from refused
                refused = None
            self.send(exchange.command, *(() if exchange.teaches else (command,)))
        try:
            seen = exchange.answered(reply)
        except QueueDamaged:
            self.close()  # the second command waits for what nobody has prepared
            raise
        try:
            return seen, self.read(blocked=True)
        except rx.ResponseError as error:
            return seen, error

    def _confirmed(self, exchange: Exchange[R], confirm: Confirmation) -> R:
        """The answer to a call that was sent with the wait for its confirmation, and how that
        went."""
        answer, reply = self._both(exchange, confirm.command)
        if confirming.says_nothing(exchange.call, answer, reply):
            try:
                self.send(*confirming.again(exchange.call, confirm))
                self.read()
                reply = self.read()
            except rx.ResponseError as error:
                reply = self.meant(error)
        if isinstance(reply, Exception):
            self.close()  # a reply may be on its way, and another server be in charge
        found: R = confirming.marked(answer, confirm, reply, self.url)
        return found

    def meant(self, error: rx.ResponseError) -> Exception:
        """What an error reply means to a command that was sent by itself."""
        return translate(error, url=self.url)

    def _refused_then(self, exchange: Exchange[Any], error: rx.ResponseError) -> Exception | None:
        """What it means to the command behind a call."""
        return self.refused(exchange, error)

    def refused(self, exchange: Exchange[Any], error: rx.ResponseError) -> Exception | None:
        """As `Exchange.refused`. Where another server may be in charge by now, the connection is
        closed: only a new one looks its address up."""
        refusal = exchange.refused(error, self.url)
        if refusal is not None and moved_on(refusal):
            self.close()
        return refusal

    def _failed(self, error: BaseException) -> None:
        """A command or its reply failed. Raises what a broken connection means; other errors are to
        be raised as they are."""
        if isinstance(error, rx.ResponseError):
            return  # a reply like any other
        if isinstance(error, rx.RedisError | OSError):
            raise self._broken(error) from error
        # interrupted: half of a command may have been sent, or a reply be on its way, which would
        # be taken for that of the next command
        self.close()
