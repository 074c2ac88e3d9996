"""Sending what is in a queue's outbox to its targets, without I/O: calls out, replies in.

Any client may do it, at any time, several at once: a job is enqueued into its target
under its own id, which the target takes once (I8). Who dies between two calls leaves the job in the
outbox, and the next one sends it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from itertools import groupby
from typing import Any

from orjson import JSONDecodeError, dumps, loads

from rqueue.errors import QueueFull, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.model.signing import split_signature
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.enqueue import enqueue_flat
from rqueue.protocol.commands.outgoing import Outgoing, outgoing_done, outgoing_take
from rqueue.protocol.exchange import KNOWN
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN, outbox

__all__ = [
    "PendingForward",
    "Steps",
    "aforward",
    "aforward_soon",
    "envelope_of",
    "forward",
    "forward_soon",
    "forwarding",
    "sends_on",
]

Steps = Generator[ScriptCall[Any], Any, int]
"""Gives calls, is sent their replies or thrown their errors, and returns how many jobs went."""

log = logger("rqueue")


def forwarding(keys: QueueKeys) -> Steps:
    """Send what is in the outbox now. A target that refuses costs the others nothing: its jobs stay
    in the outbox, and are tried again after some seconds. Raises the server errors."""
    sent = 0
    while True:
        taken = yield outgoing_take(keys)
        if not taken.jobs:
            return sent
        for target, some in groupby(taken.jobs, key=lambda job: job.target):
            sent += yield from _send(keys, target, list(some))


def _send(keys: QueueKeys, target: str, jobs: list[Outgoing]) -> Steps:
    """Send jobs to one target. Where it refuses them together each is sent alone, so that one that
    it never takes does not keep the others."""
    try:
        yield _enqueue(QueueKeys(target, keys.namespace), keys.queue, jobs)
    except ServerError:
        raise
    except RQueueError as error:
        if len(jobs) > 1 and not isinstance(error, QueueFull):
            sent = 0
            for job in jobs:
                sent += yield from _send(keys, target, [job])
            return sent
        log.warning(
            "queue %s: %d jobs for queue %s wait in the outbox: %s",
            keys.queue,
            len(jobs),
            target,
            error,
        )
        return 0
    left: int = yield outgoing_done(keys, [job.member for job in jobs])
    return left


def _enqueue(target: QueueKeys, source: str, jobs: list[Outgoing]) -> ScriptCall[Any]:
    flat: list[Any] = []
    for job in jobs:
        flat += (job.id, envelope_of(job, source))
    return enqueue_flat(target, flat, [job.terms for job in jobs])


def envelope_of(job: Outgoing, source: str) -> bytes:
    """The envelope as the target gets it: of a job that had been in the source, option `origin`
    says so. A signature holds for one queue: it is kept in `origin`, and is none any more."""
    if job.origin is None:
        return job.envelope
    signature = ""
    body = job.envelope
    if body[:1] == b"S":
        body = split_signature(body).json
        signature = job.envelope[: -len(body)].decode("ascii", "backslashreplace")
    try:
        parts = loads(body)
        opts = parts[3] if len(parts) > 3 else {}
        via = [*opts.get("origin", {}).get("via", ()), source]
        origin = {**job.origin, "queue": source, "via": via}
        if signature:
            origin["signature"] = signature
        filled = [*parts, *([], {}, {})[len(parts) - 1 :]][:3]
        return dumps([*filled, {**opts, "origin": origin}])
    except (JSONDecodeError, AttributeError, TypeError, ValueError, IndexError):
        return job.envelope


class _Course:
    """The steps, driven: what to send next, until nothing is."""

    def __init__(self, keys: QueueKeys) -> None:
        self._steps = forwarding(keys)
        self.sent = 0
        self.call: ScriptCall[Any] | None = next(self._steps)

    def answered(self, reply: Any) -> None:
        self._go(lambda: self._steps.send(reply))

    def refused(self, error: RQueueError) -> None:
        """Raises the error where it is one of the server."""
        self._go(lambda: self._steps.throw(error))

    def _go(self, step: Callable[[], ScriptCall[Any]]) -> None:
        try:
            self.call = step()
        except StopIteration as end:
            self.call, self.sent = None, end.value


class PendingForward:
    """The same for the supervisor's list of what is to be done. again: puts it on the list once
    more."""

    def __init__(self, keys: QueueKeys, again: Callable[[Any], None]) -> None:
        self.queue = keys.queue
        self._course = _Course(keys)
        self._again = again

    def call(self) -> ScriptCall[Any] | None:
        """What to send now."""
        return self._course.call

    def answered(self, reply: Any) -> bool:
        """Go on until nothing is to be sent."""
        self._course.answered(reply)
        return self._course.call is not None

    def refused(self, error: RQueueError) -> None:
        """A target refuses: the others get theirs."""
        self._course.refused(error)
        if self._course.call is not None:
            self._again(self)


def sends_on(keys: QueueKeys) -> bool:
    """Whether the last call to this queue said that it has an outbox."""
    return bool(KNOWN) and outbox.POLICY.name in KNOWN.get(keys.meta, PLAIN).policies


def forward(run: Callable[[ScriptCall[Any]], Any], keys: QueueKeys) -> int:
    """Send what is in the outbox of this queue; returns how many jobs went. Raises the server
    errors."""
    course = _Course(keys)
    while course.call is not None:
        try:
            reply = run(course.call)
        except RQueueError as error:
            course.refused(error)
        else:
            course.answered(reply)
    return course.sent


async def aforward(run: Callable[[ScriptCall[Any]], Awaitable[Any]], keys: QueueKeys) -> int:
    """`forward` for asyncio."""
    course = _Course(keys)
    while course.call is not None:
        try:
            reply = await run(course.call)
        except RQueueError as error:
            course.refused(error)
        else:
            course.answered(reply)
    return course.sent


def forward_soon(run: Callable[[ScriptCall[Any]], Any], keys: QueueKeys) -> None:
    """`forward` behind a step that is done: where it fails, the next renewal of a lease sends."""
    try:
        forward(run, keys)
    except RQueueError as error:
        log.debug("queue %s: what is in the outbox goes later: %s", keys.queue, error)


async def aforward_soon(run: Callable[[ScriptCall[Any]], Awaitable[Any]], keys: QueueKeys) -> None:
    """`forward_soon` for asyncio."""
    try:
        await aforward(run, keys)
    except RQueueError as error:
        log.debug("queue %s: what is in the outbox goes later: %s", keys.queue, error)
