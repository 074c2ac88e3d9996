"""Sending what is in a queue's outbox to its targets, without I/O: calls out, replies in.

Any client may do it, at any time, several at once: a job is enqueued into its target under its own
id, which the target takes once (I8); that jobs have ended for which one waits there is counted
once, job by job. Who dies between two calls leaves the job in the outbox, and the next one sends it
again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import groupby
from logging import DEBUG, WARNING
from typing import Any

from orjson import JSONDecodeError, dumps, loads

from rqueue.errors import QueueFull, RQueueError, ServerError, Undecodable
from rqueue.logs import logger
from rqueue.model.envelope import unpack
from rqueue.model.signing import split_signature
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.admin import readmit
from rqueue.protocol.commands.enqueue import enqueue_flat
from rqueue.protocol.commands.outgoing import Outgoing, join, outgoing_done, outgoing_take
from rqueue.protocol.course import Calls, Course, arun_course, run_course
from rqueue.protocol.departures import departure, departures
from rqueue.protocol.exchange import KNOWN
from rqueue.protocol.keys import QueueKeys, queue_of
from rqueue.protocol.policies import PLAIN, outbox

__all__ = [
    "PendingForward",
    "TargetAway",
    "aforward",
    "aforward_soon",
    "envelope_of",
    "forward",
    "forward_soon",
    "forwarding",
    "sends_on",
    "target_away",
]


ENDS_MAX = 1000
"""Ends of jobs that one call dependants, and one word more."""

log = logger("rqueue")


class TargetAway(RQueueError):
    """A target is on another node of a cluster than the queue that jobs leave, and cannot be
    reached: its jobs stay in the outbox, those for other targets go."""


def target_away(call: ScriptCall[Any], error: ServerError) -> TargetAway:
    """Says that the queue of a call cannot be reached, and why."""
    return TargetAway(f"queue '{queue_of(call.key)}' cannot be reached: {error}")


def forwarding(keys: QueueKeys) -> Calls[int]:
    """Send what is in the outbox now. A target that refuses costs the others nothing: its jobs stay
    in the outbox, and are tried again after some seconds. Raises the server errors."""
    sent = 0
    queues = [keys.queue]
    while queues:
        own = QueueKeys(queues[0], keys.namespace)
        try:
            taken = yield outgoing_take(own)
        except TargetAway as error:
            log.debug("queue %s: what is in its outbox goes later: %s", own.queue, error)
            del queues[0]
            continue
        if not taken.jobs:
            del queues[0]
            continue
        for (target, _), some in groupby(taken.jobs, key=_kind):
            for piece in _pieces(list(some)):
                sent += yield from _send(own, target, piece, queues)
    return sent


def _kind(job: Outgoing) -> tuple[str, bool]:
    return job.target, job.ends > 0


def _pieces(jobs: list[Outgoing]) -> list[list[Outgoing]]:
    """Jobs, or words of ends: in one call no more of these than it can count in a moment."""
    pieces: list[list[Outgoing]] = []
    room = 0
    for job in jobs:
        if not pieces or job.ends > room:
            pieces.append([])
            room = ENDS_MAX
        pieces[-1].append(job)
        room -= job.ends
    return pieces


def _send(keys: QueueKeys, target: str, jobs: list[Outgoing], queues: list[str]) -> Calls[int]:
    """Send jobs, or words of ends, to one target. Where it refuses them together each is sent
    alone, so that one that it never takes does not keep the others; where it is bounded, as many as
    it has room for. A target in which that has ended others is added to the queues whose outboxes
    are sent."""
    its = QueueKeys(target, keys.namespace)
    try:
        if jobs[0].ends:
            joined = yield join(its, [(job.id, job.envelope) for job in jobs])
            if joined.outgoing and target not in queues:
                queues.append(target)
        else:
            yield from _enqueued(its, keys.queue, jobs)
    except ServerError:
        raise
    except RQueueError as error:
        sent = 0
        if isinstance(error, QueueFull):
            if some := _fitting(error, keys.queue, jobs):
                sent = yield from _send(keys, target, some, queues)
                if error.limit_bytes and sent == len(some):
                    others = [job for job in jobs if job not in some]
                    sent += yield from _send(keys, target, others, queues)
                return sent
        elif len(jobs) > 1 and not isinstance(error, TargetAway):
            for job in jobs:
                sent += yield from _send(keys, target, [job], queues)
            return sent
        log.log(
            DEBUG if isinstance(error, TargetAway) else WARNING,
            "queue %s: %d jobs for queue %s wait in the outbox: %s",
            keys.queue,
            len(jobs),
            target,
            error,
        )
        return 0
    left: int = yield outgoing_done(keys, [job.member for job in jobs])
    return left


def _fitting(full: QueueFull, source: str, jobs: list[Outgoing]) -> list[Outgoing]:
    """Those of them that may fit together where all did not: without what never fits, else as many
    of the first ones as there is room for."""
    if full.limit_bytes:
        some = [job for job in jobs if len(envelope_of(job, source)) <= full.limit_bytes]
        if len(some) < len(jobs):
            return some
    return jobs[: min(full.room, len(jobs) - 1)]


def _enqueued(target: QueueKeys, source: str, jobs: list[Outgoing]) -> Calls[None]:
    """Enqueue them. An id that the target knows is there already, from a try whose answer was lost;
    or the job comes back to a queue that it left, which then has to forget that departure."""
    puts = [(job.id, envelope_of(job, source), job.terms) for job in jobs]
    while puts:
        flat: list[Any] = []
        for id_, envelope, _ in puts:
            flat += (id_, envelope)
        accepted = yield enqueue_flat(target, flat, [terms for _, _, terms in puts])
        back = [(put, _left(put[1], target.queue)) for put in (puts[i] for i in accepted.known)]
        back = [(put, left) for put, left in back if left]
        if not back:
            return
        words = yield readmit(target, [(put[0], left) for put, left in back])
        puts = [put for (put, _), was in zip(back, words, strict=True) if was != "known"]


def _left(envelope: bytes, queue: str) -> int:
    """When the job left this queue before, as it says; 0 = it did not."""
    try:
        return departure(unpack(envelope)[3], queue)
    except Undecodable:
        return 0


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
        earlier = opts.get("origin", {})
        via = [*earlier.get("via", ()), source]
        origin = {**job.origin, "queue": source, "via": via}
        if job.origin.get("outcome") != "deleted":
            # a deleted queue knows nothing any more
            origin["left"] = departures(earlier, source, job.origin["at"])
        if signature:
            origin["signature"] = signature
        filled = [*parts, *([], {}, {})[len(parts) - 1 :]][:3]
        return dumps([*filled, {**opts, "origin": origin}])
    except (JSONDecodeError, AttributeError, KeyError, TypeError, ValueError, IndexError):
        return job.envelope


class PendingForward:
    """The same for the supervisor's list of what is to be done. again: puts it on the list once
    more."""

    def __init__(self, keys: QueueKeys, again: Callable[[Any], None]) -> None:
        self.source = keys.queue
        self._course = Course(forwarding(keys))
        self._again = again

    @property
    def queue(self) -> str:
        """Where the next call goes: the queue that jobs leave, or one of their targets."""
        call = self._course.call
        return self.source if call is None else queue_of(call.key)

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
    return outbox.POLICY.name in KNOWN.get(keys.meta, PLAIN).policies


def forward(run: Callable[[ScriptCall[Any]], Any], keys: QueueKeys) -> int:
    """Send what is in the outbox of this queue; returns how many jobs went. Raises the server
    errors."""
    return run_course(forwarding(keys), run)


async def aforward(run: Callable[[ScriptCall[Any]], Awaitable[Any]], keys: QueueKeys) -> int:
    """`forward` for asyncio."""
    return await arun_course(forwarding(keys), run)


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
