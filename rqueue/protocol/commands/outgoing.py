"""Build the calls of the outbox: take what is on its way to other queues, and say that it is there;
and those of the queues that it goes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from orjson import JSONDecodeError, loads

from rqueue.model.terms import aged
from rqueue.protocol.call import Arg, CommandCall, ScriptCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import names, raw_bytes, scores

LIMIT = 100
"""Jobs that one call takes."""


class Outgoing(NamedTuple):
    """A job on its way. member: how the outbox calls it. origin: where it comes from; None of one
    that another queue's step enqueues, whose envelope goes as it is. ends: not 0 = it is no job,
    but the word that so many have ended for which the job `id` waits in the target: the envelope
    is what `join` says. since_ms: when the terms were made; 0: it is not known."""

    member: bytes
    target: str
    id: str
    terms: str
    envelope: bytes
    origin: dict[str, Any] | None
    ends: int = 0
    since_ms: int = 0

    def at(self, now: int) -> Outgoing:
        """The same job as it is to be sent now, by the clock of the queue that it leaves."""
        if not self.since_ms:
            return self
        return self._replace(terms=aged(self.terms, now - self.since_ms))


class Taken(NamedTuple):
    """`size`: jobs in the outbox. `jobs`: those taken; the others were taken a moment ago."""

    now: int
    size: int
    jobs: list[Outgoing]


def read_outgoing(member: bytes, job: bytes) -> Outgoing | None:
    """A job of the outbox as it is stored; None where it cannot be read."""
    head, _, envelope = job.partition(b"\n")
    try:
        said = loads(head)
        target, id_, ends = said["target"], said["id"], said.get("ends", 0)
        terms = "" if ends else said["terms"]
        since = int(said.get("at", 0))
        return Outgoing(member, target, id_, terms, envelope, said.get("origin"), ends, since)
    except (JSONDecodeError, KeyError, TypeError, AttributeError):
        return None


def _read_taken(reply: Any) -> Taken:
    now, size, *flat = reply
    found = map(read_outgoing, flat[::2], flat[1::2])
    return Taken(now, size, [job.at(now) for job in found if job is not None])


def _read_count(reply: Any) -> int:
    return int(reply[1])


def _read_flag(reply: Any) -> bool:
    return bool(reply[1])


def outgoing_take(keys: QueueKeys, limit: int = LIMIT) -> ScriptCall[Taken]:
    """Take jobs out of the outbox, to send them; for five seconds nobody else gets them."""
    return ScriptCall("outgoing_take", keys.meta, [limit], _read_taken)


def outgoing_done(keys: QueueKeys, members: Sequence[bytes]) -> ScriptCall[int]:
    """They are in their queues; answers how many left the outbox by that."""
    return ScriptCall("outgoing_done", keys.meta, members, _read_count)


class Joined(NamedTuple):
    """waiting: how many of the jobs wait still, or did. outgoing: jobs and words of their queue
    that are on their way to others now."""

    waiting: int
    outgoing: int


def _read_joined(reply: Any) -> Joined:
    return Joined(int(reply[1]), int(reply[2]))


def join(keys: QueueKeys, ends: Sequence[tuple[str, bytes]]) -> ScriptCall[Joined]:
    """Jobs of other queues have ended, for which these wait: of each its id and what is said, as
    `Outgoing` has both; at most 100."""
    items: list[Arg] = []
    for id_, said in ends:
        items += (raw_bytes(id_), said)
    return ScriptCall("join", keys.meta, items, _read_joined)


def end_of(place: int, id: str, state: str) -> list[str]:
    """What is said of one job that has ended, and left nothing."""
    return [str(place), id, state, "", ""]


def link(keys: QueueKeys, source: str, what: Sequence[str]) -> ScriptCall[bool]:
    """Note in a target that the queue `source` sends its "dead" or "expired" jobs there; nothing:
    no more. False where there is no such target."""
    return ScriptCall("link", keys.meta, [source, ",".join(what)], _read_flag)


class Alternates(NamedTuple):
    """Where a queue sends its dead letters and its expired jobs, "" = nowhere; and whether there is
    such a queue."""

    dead_to: str
    expired_to: str
    there: bool

    @property
    def targets(self) -> dict[str, list[str]]:
        """Target -> what goes there."""
        found: dict[str, list[str]] = {}
        for what, target in (("dead", self.dead_to), ("expired", self.expired_to)):
            if target:
                found.setdefault(target, []).append(what)
        return found


class Outbox(NamedTuple):
    """Members of the outbox, of the first thousand, by the time before which nobody else sends
    them; all that have a job."""

    due: dict[str, float]
    jobs: list[str]


def _read_outbox(replies: Sequence[Any]) -> Outbox:
    return Outbox(scores(replies[0]), names(replies[1]))


def outbox(keys: QueueKeys) -> CommandCall[Outbox]:
    """What is in the outbox."""
    commands: list[tuple[Arg, ...]] = [
        ("ZRANGE", keys.outgoing, 0, 999, "WITHSCORES"),
        ("HKEYS", keys.outgoing_jobs),
    ]
    return CommandCall(keys.meta, commands, _read_outbox)
