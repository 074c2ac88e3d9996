"""One raw connection to Redis for the protocol's hot path: no pool, no hidden retry.

A worker uses two connections: one carries its calls, the other blocks on its wake lists
(`rqueue.transport.wake_listener`). A broken connection is closed and raises; its caller decides
what was lost.
"""

from __future__ import annotations

import socket
from typing import Any, TypeVar

import redis
from redis import exceptions as rx
from redis.backoff import NoBackoff
from redis.retry import Retry

from rqueue.protocol import scripts
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.error_mapping import moved_on, translate
from rqueue.transport.redis_client import url_of
from rqueue.transport.resp import RespSocket
from rqueue.transport.server_check import check_greeting, check_refusal

R = TypeVar("R")


class Connection:
    """A connection made like those of `client` (same address, login, TLS), used by one thread.

    `timeout`: seconds that a reply may take; None waits for ever.
    """

    def __init__(self, client: redis.Redis, timeout: float | None = 15.0) -> None:
        self._client = client
        pool = client.connection_pool
        kwargs = dict(pool.connection_kwargs)
        kwargs.update(
            socket_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            decode_responses=False,
            protocol=2,
        )
        kwargs.pop("retry_on_error", None)
        kwargs.pop("retry_on_timeout", None)
        self._timeout = timeout
        self._inner: Any = pool.connection_class(**kwargs)
        self._resp: RespSocket | None = None

    def connect(self) -> None:
        """Connect, log in and see who answers, if not connected. Raises the tree of
        `rqueue.errors`."""
        inner = self._inner
        if self.connected:
            return
        try:
            inner.connect()
            inner.send_command("HELLO")
            try:
                greeting = inner.read_response()
            except rx.ResponseError as error:
                check_refusal(error, self.url)
            else:
                check_greeting(greeting, self.url)
        except (rx.RedisError, OSError) as error:
            raise self._broken(error, sent=False) from error
        except BaseException:
            self.close()
            raise
        sock: object = inner._sock
        if type(sock) is socket.socket:  # on TLS redis-py's own framing goes on
            self._resp = RespSocket(sock, self._timeout, inner._parser.parse_error)

    @property
    def url(self) -> str:
        """Where it is connected to, for messages."""
        return url_of(self._client)

    @property
    def connected(self) -> bool:
        """Whether there is a socket (it may be dead and not know)."""
        return self._inner._sock is not None

    @property
    def socket(self) -> Any:
        """The connected socket, for select; None when not connected."""
        return self._inner._sock

    def close(self) -> None:
        """Drop the connection; the next command opens a new one."""
        self._resp = None
        self._inner.disconnect()

    def send(self, *command: Arg) -> None:
        """Send one command and do not wait. Raises the tree of `rqueue.errors`."""
        self._send(command)

    def _send(self, *commands: tuple[Arg, ...]) -> None:
        if self._resp is None:
            self.connect()
        try:
            if self._resp is not None:
                self._resp.send(*commands)
            else:
                inner = self._inner
                packed = inner.pack_commands(commands)
                inner.send_packed_command(packed, check_health=False)
        except (rx.RedisError, OSError) as error:
            raise self._broken(error) from error
        except BaseException:
            self.close()  # interrupted: half of the command may have been sent
            raise

    def read(self) -> Any:
        """Read one reply; an error reply raises redis-py's ResponseError."""
        try:
            if self._resp is not None:
                return self._resp.read()
            return self._inner.read_response()
        except rx.ResponseError:
            raise
        except (rx.RedisError, OSError) as error:
            raise self._broken(error) from error
        except BaseException:
            self.close()  # interrupted: the reply would be taken for that of the next command
            raise

    def command(self, *command: Arg) -> Any:
        """Send one command and read its reply."""
        self.send(*command)
        return self.read()

    def run(self, call: ScriptCall[R], *, queue: str = "", consumer: str = "") -> R:
        """Run a script call; a server that forgot the script is taught it (restart, flush)."""
        self.begin(call)
        return self.finish(call, queue=queue, consumer=consumer)

    def begin(self, call: ScriptCall[Any]) -> None:
        """Send a script call and do not wait: `finish` reads its reply, before any other call."""
        self._send(("EVALSHA", scripts.script(call.script).sha, 2, *call.keys, *call.args))

    def finish(self, call: ScriptCall[R], *, queue: str = "", consumer: str = "") -> R:
        """Read the reply of the call that was begun."""
        try:
            try:
                reply = self.read()
            except rx.NoScriptError:
                source = scripts.script(call.script).source
                reply = self.command("EVAL", source, 2, *call.keys, *call.args)
        except rx.ResponseError as error:
            raise self.refused(call, error, queue, consumer) from error
        return call.read(reply)

    def run_then(
        self, call: ScriptCall[R], command: tuple[Arg, ...], *, queue: str = ""
    ) -> tuple[R, Any]:
        """Run a script call and a command that waits for what the call has announced, sent with
        it: the replies of both. Where only the command is refused, its reply is the error."""
        self._send(("EVALSHA", scripts.script(call.script).sha, 2, *call.keys, *call.args), command)
        try:
            reply = self.read()
        except rx.ResponseError as error:
            # nothing was announced: what waits for it would wait for nothing
            self.close()
            if not isinstance(error, rx.NoScriptError):
                raise self.refused(call, error, queue) from error
            self.run(call, queue=queue)
            return self.run_then(call, command, queue=queue)
        seen = call.read(reply)
        try:
            return seen, self.read()
        except rx.ResponseError as error:
            return seen, self.refused(call, error, queue)

    def refused(
        self, call: ScriptCall[Any], error: rx.ResponseError, queue: str, consumer: str = ""
    ) -> Exception:
        """The error for an error reply to a call. Where another server may be in charge by now,
        the connection is closed: only a new one looks its address up."""
        script = scripts.script(call.script)
        if (place := script.locate(str(error))) is not None:
            error.add_note(f"at {place}")
        found = translate(error, url=self.url, script=call.script, queue=queue, consumer=consumer)
        if moved_on(found):
            self.close()
        return found

    def _broken(self, error: Exception, *, sent: bool = True) -> Exception:
        # a reply may still be on its way: this connection must not be used again
        self.close()
        return translate(error, url=self.url, sent=sent)
