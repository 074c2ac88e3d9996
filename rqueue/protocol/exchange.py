"""One script call's way to Redis and back, without I/O.

Each driver (the sync client, the asyncio client, a worker, the supervisor's loop, which never
blocks, and commands over redis-py's own client) does the same: it sends `command`, reads the
answer, and passes an error to `refused` and a reply to `goes_on`, the last one to `answered`. The
driver alone knows how to send and to wait.

A script that the server does not know is taught by SCRIPT LOAD, never by EVAL: newer servers keep
few of the scripts that came by EVAL, and drop the others whenever they like.

Where a step met a key of a wrong type, one more command finds out which: the error names it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Generic, TypeVar

from redis import exceptions as rx

from rqueue.errors import ConfigError, QueueDamaged, RedisUnavailable, WrongServer
from rqueue.protocol import scripts
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.commands.key_types import types_met_by
from rqueue.protocol.error_mapping import damaged, is_wrong_type, translate
from rqueue.protocol.keys import queue_of
from rqueue.protocol.kind_words import two_queues
from rqueue.protocol.policies import PLAIN, ExcludedPolicies, Kind, UnknownPolicy

__all__ = ["KNOWN", "Exchange"]

R = TypeVar("R")

KNOWN: dict[str, Kind] = {}
"""Meta key -> the kind of that queue, where it is not a plain one, as a server said last. A process
asks once for each queue; where the same name is a queue of another kind on another server, or was
made anew, each script says so before it writes, and the other one is sent."""

_KINDS_MOST = 3
"""How often one call is sent again because the queue is of another kind: it may be changed just
then."""


class Exchange(Generic[R]):
    """A script call under way. queue, consumer: for the messages of errors.

    command: what to send now: the script by its hash; its source first, once the server said that
    it does not know it (a restart, a flush, a new primary); that of the queue's kind, once a script
    said which it is. teaches: whether that teaches the server a script, and is not the call itself.
    """

    command: tuple[Arg, ...]
    _script: scripts.Script
    # of nearly all calls: what differs is set where it does, on the way of none of them
    teaches = False
    _forgotten: Exception | None = None
    _told = 0
    _met: Exception | None = None  # a key of a wrong type
    _taught = ""  # the SHA of the script that the server was taught last

    def __init__(self, call: ScriptCall[R], queue: str = "", consumer: str = "") -> None:
        self.call = call
        self.queue = queue
        self.consumer = consumer
        self._aim()

    def _aim(self) -> None:
        """Find out what to send now."""
        if self.teaches:
            self.command = ("SCRIPT", "LOAD", self._script.source)
            return
        call: ScriptCall[Any] = self.call
        kind = PLAIN
        if self._met is not None:
            call = types_met_by(call)
        else:
            kind = self._kind()
        self._script = script = scripts.script(call.script, kind)
        args = call.args if kind is PLAIN else call.args_for(kind.policies)
        self.command = ("EVALSHA", script.sha, 2, *call.keys, *args)

    def goes_on(self, _reply: Any) -> bool:
        """Whether a reply was none to the call itself: `command` is to be sent once more."""
        if not self.teaches:
            return False
        self.teaches = False
        self._aim()
        return True

    def _kind(self) -> Kind:
        kind = KNOWN.get(self.call.key, PLAIN)
        if not self.call.needs:
            return kind
        try:
            return kind.having(self.call.needs)
        except ExcludedPolicies as error:
            if not self._told:  # it may have been made anew since: its script says so
                with suppress(ExcludedPolicies):  # of what the call needs itself
                    return PLAIN.having(self.call.needs)
            needed = ", ".join(self.call.needs)
            raise ConfigError(
                needed, f"queue '{self._queue}': {two_queues(error, self.call.needs)}"
            ) from None

    def _of_kind(self, stamp: str, url: str) -> Exception | None:
        """The queue is of the kind with this stamp."""
        try:
            kind = Kind.parse(stamp)
        except UnknownPolicy as error:
            return WrongServer(f"{error}: this rqueue is too old for the queue", url=url)
        self._told += 1
        self._forgotten = None
        if kind == PLAIN:
            KNOWN.pop(self.call.key, None)
        else:
            KNOWN[self.call.key] = kind
        self._aim()
        return None

    def answered(self, reply: Any) -> R:
        """What a reply means, read by the call's own reader. Raises QueueDamaged where it says
        which key is of a wrong type."""
        if self._met is not None:
            raise self._damaged(reply) from self._met
        if self.call.needs:  # what it did not have, it has now
            KNOWN[self.call.key] = self._kind()
        return self.call.read(reply)

    def refused(self, error: Exception, url: str, *, sent: bool = True) -> Exception | None:
        """What an error means: None where `command` is to be sent again, else the error to raise.

        Nothing runs twice: a server says that it does not know a script before it begins, and a
        script that the queue is of another kind before it writes. url: where it was sent to; not
        `sent`: there was no connection to send it over. An error of the script itself names the
        line of its Lua file.
        """
        if isinstance(error, rx.NoScriptError) and self._unknown():
            self._forgotten, self.teaches = error, True
            self._aim()
            return None
        if self._met is not None:
            found = translate(error, url=url)
            return found if isinstance(found, RedisUnavailable) else self._damaged([])
        if is_wrong_type(error):
            self._met, self._forgotten = error, None
            self._aim()
            return None
        said = str(error) if isinstance(error, rx.ResponseError) else ""
        if said.startswith("KIND ") and self._told < _KINDS_MOST:
            return self._of_kind(said.removeprefix("KIND "), url)
        if error.__context__ is None and hasattr(self._forgotten, "earlier"):
            error.__context__ = self._forgotten  # a repeat, as that one was: see `translate`
        if said and (place := self._script.locate(said)) is not None:
            error.add_note(f"at {place}")
        return translate(
            error,
            url=url,
            script=self.call.script,
            queue=self._queue,
            consumer=self.consumer,
            sent=sent,
        )

    def elsewhere(self) -> None:
        """The call goes to another server from here on, which may have to be taught."""
        self._forgotten, self._taught, self.teaches = None, "", False
        self._aim()

    def _unknown(self) -> bool:
        """Whether the script that was sent last has not been taught for this call: another one may
        have been, where another thread learned of the queue's kind meanwhile."""
        self._taught, taught = self._script.sha, self._taught
        return self._taught != taught

    @property
    def _queue(self) -> str:
        # not first who asks: what one queue sends to another is refused by that one
        return queue_of(self.call.key) or self.queue

    def _damaged(self, reply: Any) -> QueueDamaged:
        wrong = types_met_by(self.call).read(reply)
        return damaged(self._queue, self.call.key[:-4], wrong)
