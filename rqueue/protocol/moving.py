"""Jobs that people move or copy into another queue: the terms and the envelope that each has there,
without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha1
from math import ceil
from typing import Any, Literal, NamedTuple, TypeVar

from orjson import dumps

from rqueue.errors import Undecodable
from rqueue.model.job import Delivery, Header
from rqueue.model.job_count import STAYED_MOST, why_it_stays
from rqueue.model.signing import split_signature
from rqueue.model.terms import Terms, aged
from rqueue.model.unique_key import Conflict, UniqueKey
from rqueue.protocol.commands.admin import MOVE_MAX, Moved
from rqueue.protocol.departures import departures
from rqueue.protocol.job_packer import JobPacker
from rqueue.protocol.policies import (
    ExcludedPolicies,
    Kind,
    front,
    groups,
    hold,
    last_value,
    limits,
    shares,
    sorted_,
    ttl,
    unique,
)

__all__ = ["Copier", "Listed", "pieces", "slices"]

T = TypeVar("T")

SLICE_BYTES = 1_000_000
"""Envelopes of one call, but for a single larger one."""


class Listed(NamedTuple):
    """A job that waits, or is dead. due_ms: of a scheduled one; 0 = it may run at once."""

    job: Delivery
    due_ms: int = 0


class Copier:
    """Makes jobs of one queue into jobs of another one.

    source, target: what packs the jobs of each. kind: of the target. levels: how many the source
    has. now: ms, Redis's clock, which is also the departure of what leaves.
    """

    def __init__(
        self, source: JobPacker, target: JobPacker, kind: Kind, *, levels: int, now: int
    ) -> None:
        self._source = source
        self._target = target
        self._kind = kind
        self._levels = levels
        self._timed = _may_have(kind, ttl.POLICY.name)
        self._excludes = _excludes(kind, unique.POLICY.name)
        self.now = now
        self.stayed: dict[str, str] = {}

    def stays(self, id: str, why: str) -> None:
        """Note why a job does not go, in words or as a script says it."""
        if len(self.stayed) < STAYED_MOST:
            self.stayed[id] = why_it_stays(why)

    def stays_for(self, id: str, owner: str) -> None:
        """Note that a job does not go because another one has its unique key there."""
        self.stays(id, f"its unique key is that of job {owner!r} there")

    def takes(self, listed: Listed) -> bool:
        """Whether the job can go: it can be read, and, where it is unique, can be so there."""
        job = listed.job
        try:
            said = job.header.unique
        except Undecodable:
            self.stays(job.id, "damaged")
            return False
        if job.header.results:
            self.stays(job.id, "results")
            return False
        if said and self._excludes:
            self.stays(job.id, f"it is unique, which no job is in a queue with {self._excludes}")
            return False
        return True

    def key_of(self, listed: Listed) -> str:
        """The unique key that the job has to have there; "" without one."""
        said = UniqueKey.parse(listed.job.header.unique)
        return said.key if said else ""

    def of(self, listed: Listed, outcome: Literal["moved", "copied"]) -> Moved:
        """The job as it is there; it begins anew, and says where it comes from. Raises Unsigned and
        Forged where there are keys, Undecodable."""
        job = listed.job
        task, args, kwargs, opts = self._source.envelope(job)
        terms = self._terms(listed, outcome)
        options = {**opts, "origin": self._origin(job, opts.get("origin"), outcome)}
        body = self._target.signed(job.id, dumps([task, args, kwargs, options]), terms)
        if 0 < job.header.expires_ms < self.now:
            terms = aged(terms, 2)  # behind the end of a time to live of 1 ms
        # a short name of the value, no secret: Redis has no other digest
        digest = sha1(job.value, usedforsecurity=False).hexdigest()
        return Moved(job.id, digest, terms, body)

    def _terms(self, listed: Listed, outcome: Literal["moved", "copied"]) -> str:
        header, policies = listed.job.header, self._kind.policies
        left = header.expires_ms - self.now if header.expires_ms and self._timed else 0
        return Terms(
            min(9, header.level + max(0, 5 - ceil(self._levels / 2))),
            at_ms=listed.due_ms,
            max_deliveries=header.max_deliveries,
            max_crashes=header.max_crashes,
            ttl_ms=max(1, left) if header.expires_ms and self._timed else 0,
            group=header.group if groups.POLICY.name in policies else "",
            key=header.key if last_value.POLICY.name in policies else "",
            sort=header.sort if sorted_.POLICY.name in policies else "",
            hold=_is_held(listed.job) and _may_have(self._kind, hold.POLICY.name),
            front=_comes_to_front(listed.job) and _may_have(self._kind, front.POLICY.name),
            unique=self._unique_there(header, outcome),
            share=header.share if _may_have(self._kind, shares.POLICY.name) else "",
            limits=header.limits if _may_have(self._kind, limits.POLICY.name) else (),
        ).text

    def _unique_there(self, header: Header, outcome: Literal["moved", "copied"]) -> str:
        """Of a period the rest goes on there. What has left is refused where another job has its
        key by now, and so waits in the outbox until that is free; a copy is left out."""
        said = UniqueKey.parse(header.unique)
        if said is None:
            return ""
        until = said.until
        if isinstance(until, int):
            began = header.due_ms if said.on_conflict == "throttle" else 0
            rest = max(header.enqueued_ms, began) + until - self.now
            until = rest if rest > 0 else "end"
        conflict: Conflict = "raise" if outcome == "moved" else "existing"
        return UniqueKey(said.key, until, conflict).text

    def _origin(self, job: Delivery, earlier: Any, outcome: str) -> dict[str, Any]:
        header = job.header
        origin: dict[str, Any] = {
            "outcome": outcome,
            "at": self.now,
            "enqueued": header.enqueued_ms,
            "attempts": header.attempts,
            "deliveries": header.deliveries,
            "queue": self._source.queue,
        }
        if header.group:
            origin["group"] = header.group
        if outcome == "moved":
            origin["left"] = departures(earlier, self._source.queue, self.now)
        if job.body[:1] == b"S" and not self._source.signs:
            body = split_signature(job.body).json
            signature = job.body[: -len(body)]
            origin["signature"] = signature.decode("ascii", "backslashreplace")
        return origin


def pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in pieces for one call each."""
    for start in range(0, len(items), MOVE_MAX):
        yield items[start : start + MOVE_MAX]


def slices(jobs: Iterable[Moved]) -> Iterator[list[Moved]]:
    """The jobs in pieces for one call each, which is not too large."""
    piece: list[Moved] = []
    size = 0
    for job in jobs:
        size += len(job.envelope)
        if piece and (len(piece) == MOVE_MAX or size > SLICE_BYTES):
            yield piece
            piece, size = [], len(job.envelope)
        piece.append(job)
    if piece:
        yield piece


def _is_held(job: Delivery) -> bool:
    """Whether the job keeps its place until its time has come."""
    return b"h" in _tags(job)


def _comes_to_front(job: Delivery) -> bool:
    """Whether the job, which is not ready yet, is to stand before the others then."""
    return any(tag[:1] == b"f" for tag in _tags(job))


def _tags(job: Delivery) -> list[bytes]:
    return job.value.partition(b";")[0].split(b"|")[1:]


def _may_have(kind: Kind, policy: str) -> bool:
    return not _excludes(kind, policy)


def _excludes(kind: Kind, policy: str) -> str:
    """The policy of this kind that does not go together with another one; "" where none is."""
    try:
        kind.having((policy,))
    except ExcludedPolicies as error:
        return next(name for name in error.policies if name != policy)
    return ""
