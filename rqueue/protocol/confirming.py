"""Waiting for the confirmation of what a call has stored: what is sent, and what it means. No I/O.

The command that waits (`Confirmation.command`) goes out in the same packet as the script. Servers
since Redis 7.2 answer it at once where the connection has written nothing itself: so it says
nothing of a job that an earlier try, or another client, has stored. Where a step may have changed
nothing, something is written for the wait's sake, and it is waited for that.
"""

from __future__ import annotations

from typing import Any

from redis import exceptions as rx

from rqueue.errors import RedisUnavailable
from rqueue.model.confirmation import Confirmation
from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.commands.commit import NEW_JOBS, Committed
from rqueue.protocol.commands.enqueue import Accepted
from rqueue.protocol.error_mapping import translate

__all__ = ["again", "marked", "says_nothing"]


def says_nothing(call: ScriptCall[Any], answer: Any, reply: Any) -> bool:
    """Whether the wait behind a call has confirmed something, and perhaps not what its answer says
    is stored: the call itself may have changed nothing."""
    if isinstance(reply, Exception) or call.confirm is None:
        return False
    return call.confirm.missing(reply) is None and not _wrote(call, answer)


def _wrote(call: ScriptCall[Any], answer: Any) -> bool:
    if isinstance(answer, Committed):
        refused = len(answer.known) + len(answer.answered)
        return not answer.stale and refused < int(call.args[NEW_JOBS])
    return isinstance(answer, Accepted) and answer.accepted > 0


def again(call: ScriptCall[Any], confirm: Confirmation) -> tuple[tuple[Arg, ...], ...]:
    """A write that leaves nothing behind, and the wait for it and for all that was written before,
    by whomever."""
    return ("SET", call.key[:-4] + "confirm", "", "PX", 1), confirm.command


def marked(answer: Any, confirm: Confirmation, reply: Any, url: str) -> Any:
    """The answer with what is missing of its confirmation. Raises the server errors that pass: the
    call is to be repeated, of which the queue knows."""
    if isinstance(reply, rx.RedisError):
        reply = translate(reply, url=url)
    if isinstance(reply, RedisUnavailable):
        reply.outcome_unknown = True  # it is stored here; whether that lasts is not known
        raise reply
    missing = confirm.missing(reply)
    if missing is None or not isinstance(answer, Accepted | Committed):
        return answer
    return answer._replace(unconfirmed=missing)
