"""One script call's way to Redis and back, without I/O.

Each driver (the sync client, the asyncio client, a worker, the supervisor's loop, which never
blocks, and commands over redis-py's own client) does the same: it sends `command`, reads the
answer, and passes a reply to `answered` and an error to `refused`. The driver alone knows how to
send and to wait.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from redis import exceptions as rx

from rqueue.protocol import scripts
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.error_mapping import translate

__all__ = ["Exchange"]

R = TypeVar("R")


class Exchange(Generic[R]):
    """A script call under way. queue, consumer: for the messages of errors."""

    __slots__ = ("_forgotten", "call", "consumer", "queue")

    def __init__(self, call: ScriptCall[R], queue: str = "", consumer: str = "") -> None:
        self.call = call
        self.queue = queue
        self.consumer = consumer
        self._forgotten: Exception | None = None

    def command(self) -> tuple[Arg, ...]:
        """What to send now: the script by its hash, and its source once the server said that it
        does not know it (a restart, a flush, a new primary)."""
        call = self.call
        script = scripts.script(call.script)
        if self._forgotten is None:
            return ("EVALSHA", script.sha, 2, *call.keys, *call.args)
        return ("EVAL", script.source, 2, *call.keys, *call.args)

    def answered(self, reply: Any) -> R:
        """What a reply means, read by the call's own reader."""
        return self.call.read(reply)

    def refused(self, error: Exception, url: str) -> Exception | None:
        """What an error means: None where `command` is to be sent again, else the error to raise.

        Nothing runs twice: a server says that it does not know a script before it begins. url:
        where it was sent to. An error of the script itself names the line of its Lua file.
        """
        if self._forgotten is None:
            if isinstance(error, rx.NoScriptError):
                self._forgotten = error
                return None
        elif error.__context__ is None and hasattr(self._forgotten, "earlier"):
            error.__context__ = self._forgotten  # a repeat, as that one was: see `translate`
        if (
            isinstance(error, rx.ResponseError)
            and (place := scripts.script(self.call.script).locate(str(error))) is not None
        ):
            error.add_note(f"at {place}")
        return translate(
            error, url=url, script=self.call.script, queue=self.queue, consumer=self.consumer
        )
