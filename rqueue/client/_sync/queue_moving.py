# Generated from rqueue/client/_async/queue_moving.py (`make generate`): do not edit.
"""What people do with many jobs that wait: move or copy them into another queue, expire, reject or
cancel them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from rqueue.client._sync.queue_steering import PAGE, QueueSteering
from rqueue.errors import ConfigError, Undecodable
from rqueue.model.expect import expect, shown
from rqueue.model.ids import check_id
from rqueue.model.job import Delivery
from rqueue.model.job_filter import ANY, JobFilter
from rqueue.model.names import check_queue
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import MOVE_MAX
from rqueue.protocol.commands.deletion import is_deleted
from rqueue.protocol.departures import departure
from rqueue.protocol.forwarding import forward
from rqueue.protocol.job_packer import JobPacker
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.moving import Carried, Copier, Listed, pieces, slices
from rqueue.protocol.policies import Kind

__all__ = ["QueueMoving"]

Step = Callable[[Sequence[Listed]], int]

WINDOW = 5000
"""Jobs that are chosen before the first of them leaves."""

READ_AGAIN = 3
"""How often a job is read again that has changed meanwhile."""


class QueueMoving(QueueSteering):
    """The administration of many jobs."""

    def move(self, target: str, *ids: str) -> Carried:
        """Move jobs that wait, or are dead, into another queue (Q-69); returns how many went, a
        number whose `stayed` says of the others why they did not.

        They keep their ids, priorities, due times, limits, labels, unique keys and what is left of
        their times to live, and their groups and keys where the target has such; attempts begin at
        nothing. Each leaves in one step and is enqueued there once, at the tail, in the order given
        here; if this call is interrupted the rest stays, and what has left arrives all the same.
        What a consumer holds stays with it, and what the target knows already (another job of that
        id, or of that unique key) stays too, and so does one whose time to live ends before it is
        due. The history of this queue says `moved`, and so does `JobHandle.state`.
        Raises ConfigError where there is no such queue, and Forged for a job whose signature does
        not hold.
        """
        copier = self._copier(target)
        done = self._move(target, copier, self._named(ids, copier))
        return Carried(done, copier.stayed)

    def move_all(
        self,
        target: str,
        which: JobFilter = ANY,
        *,
        limit: int | None = None,
        dead: bool = False,
    ) -> Carried:
        """Move all jobs that wait and fit, or the first `limit` of them, into another queue, in
        their order (Q-69, ASC-29); dead: the dead letters instead. What is enqueued meanwhile
        stays. See `move`."""
        copier = self._copier(target)

        def move(jobs: Sequence[Listed]) -> int:
            return self._move(target, copier, jobs)

        done = self._each_window(which, limit, move, dead=dead)
        return Carried(done, copier.stayed)

    def copy(self, target: str, *ids: str) -> Carried:
        """Copy jobs that wait, or are dead, into another queue (Q-69); returns how many are new
        there. A copy has the id of its original, so a copy that is made twice is one job; else see
        `move`. Raises QueueFull."""
        copier = self._copier(target)
        done = self._copy(target, copier, self._named(ids, copier))
        return Carried(done, copier.stayed)

    def copy_all(
        self,
        target: str,
        which: JobFilter = ANY,
        *,
        limit: int | None = None,
        dead: bool = False,
    ) -> Carried:
        """Copy all jobs that wait and fit, or the first `limit` of them; see `copy`."""
        copier = self._copier(target)
        left, done = _limit(limit), 0
        piece: list[Listed] = []
        for listed in self._listed(which, dead=dead):
            if not left:
                break
            left -= 1
            piece.append(listed)
            if len(piece) == MOVE_MAX:
                done += self._copy(target, copier, piece)
                piece = []
        return Carried(done + self._copy(target, copier, piece), copier.stayed)

    def expire(self, *ids: str) -> int:
        """End jobs that wait as expired, whatever time to live they have (A-38); returns how many.
        They go where expired jobs of this queue go: they end, become dead letters, or leave for
        `expired_to`. Held jobs stay with their consumers."""
        return self._expire(ids)

    def expire_all(self, which: JobFilter = ANY, *, limit: int | None = None) -> int:
        """`expire` for all jobs that wait and fit, or the first `limit` of them."""

        def expire(jobs: Sequence[Listed]) -> int:
            return self._expire([listed.job.id for listed in jobs])

        return self._each_window(which, limit, expire)

    def reject(self, *ids: str, reason: str = "") -> int:
        """Make dead letters of jobs that wait (A-38), here or where dead letters of this queue go;
        returns how many. Held jobs stay with their consumers. reason: for people, at most 2000
        bytes. `rqueue dead requeue` gives them another life."""
        return self._reject(ids, _reason(reason))

    def reject_all(
        self, which: JobFilter = ANY, *, limit: int | None = None, reason: str = ""
    ) -> int:
        """`reject` for all jobs that wait and fit, or the first `limit` of them."""
        why = _reason(reason)

        def reject(jobs: Sequence[Listed]) -> int:
            return self._reject([listed.job.id for listed in jobs], why)

        return self._each_window(which, limit, reject)

    def cancel_all(self, which: JobFilter = ANY, *, limit: int | None = None) -> int:
        """Cancel all jobs that wait and fit, or the first `limit` of them (A-38); returns how many.
        Held jobs are left alone."""

        def cancel(jobs: Sequence[Listed]) -> int:
            return sum([self.cancel(listed.job.id, held=False) for listed in jobs])

        return self._each_window(which, limit, cancel)

    # -- steps -------------------------------------------------------------------------------------

    def _expire(self, ids: Sequence[str]) -> int:
        done = 0
        for some in pieces([check_id(id_) for id_ in ids]):
            done += (self._run(commands.expire(self.keys, some))).count("expired")
        return self._sent_on(done)

    def _reject(self, ids: Sequence[str], reason: bytes) -> int:
        done = 0
        for some in pieces([check_id(id_) for id_ in ids]):
            done += (self._run(commands.reject(self.keys, some, reason))).count("rejected")
        return self._sent_on(done)

    def _sent_on(self, done: int) -> int:
        """Dead letters and expired jobs may be on their way to another queue."""
        if done:
            forward(self._run, self.keys)
        return done

    def _move(self, target: str, copier: Copier, jobs: Sequence[Listed]) -> int:
        done, again = 0, list(jobs)
        for _ in range(READ_AGAIN):
            changed: list[str] = []
            free = self._not_known(target, copier, filter(copier.takes, again))
            for some in slices(copier.of(listed, "moved") for listed in free):
                call = commands.move(self.keys, target, copier.now, some)
                answers = self._run(call)
                done += answers.count("moved")
                for job, was in zip(some, answers, strict=True):
                    if was == "other":
                        changed.append(job.id)
                    elif was != "moved":
                        copier.stays(job.id, was)
                if "moved" in answers:
                    forward(self._run, self.keys)
            again = self._named(changed, copier)
            if not again:
                return done
        for listed in again:
            copier.stays(listed.job.id, "other")
        return done

    def _copy(self, target: str, copier: Copier, jobs: Sequence[Listed]) -> int:
        done = 0
        for some in slices(copier.of(one, "copied") for one in filter(copier.takes, jobs)):
            flat = [part for job in some for part in (job.id, job.envelope)]
            terms = [job.terms for job in some]
            call = commands.enqueue_flat(self._keys_of(target), flat, terms)
            answer = self._run(call)
            done += answer.accepted
            for place in answer.known:
                copier.stays(some[place].id, "known")
            for other in answer.answered:
                copier.stays_for(some[other.place].id, other.id)
        return done

    def _not_known(self, target: str, copier: Copier, jobs: Iterable[Listed]) -> list[Listed]:
        """Those whose ids and unique keys the target takes: it keeps a job of its own of such an
        id, and this one would be lost."""
        free: list[Listed] = []
        going: dict[str, str] = {}  # unique keys of those before, which are not there yet
        for some in pieces(list(jobs)):
            left = [
                (listed.job.id, departure(self._packer.envelope(listed.job).opts, target))
                for listed in some
            ]
            words = self._run(commands.readmit(self._keys_of(target), left, look=True))
            new: list[Listed] = []
            for listed, was in zip(some, words, strict=True):
                if was == "known":
                    copier.stays(listed.job.id, was)
                else:
                    new.append(listed)
            owners = self._owners(target, [key for key in map(copier.key_of, new) if key])
            for listed in new:
                key, id_ = copier.key_of(listed), listed.job.id
                owner = key and (owners[key] or going.setdefault(key, id_))
                if owner and owner != id_:
                    copier.stays_for(id_, owner)
                else:
                    free.append(listed)
        return free

    def _owners(self, target: str, unique: Sequence[str]) -> dict[str, str]:
        """The ids of the jobs that have these unique keys in the target; "" where none has."""
        if not unique:
            return {}
        owners = self._run(commands.key_owners(self._keys_of(target), unique))
        return dict(zip(unique, owners, strict=True))

    # -- which jobs --------------------------------------------------------------------------------

    def _each_window(
        self,
        which: JobFilter,
        limit: int | None,
        step: Step,
        *,
        dead: bool = False,
    ) -> int:
        """Do this with all that fit, some thousands at a time: what leaves lets others of its group
        come to the fore, so each look begins at the head."""
        most, done = _limit(limit), 0
        tried: set[str] = set()
        until = (self._run(commands.counts(self.keys, oldest=False))).now
        while done < most:
            window: list[Listed] = []
            for listed in self._listed(which, dead=dead, until=until):
                if listed.job.id not in tried:
                    window.append(listed)
                if len(window) >= min(WINDOW, most - done):
                    break
            if not window:
                break
            moved = step(window)
            done += moved
            if moved < len(window):
                tried.update(listed.job.id for listed in window)
        return done

    def _listed(
        self, which: JobFilter, *, dead: bool = False, until: int | None = None
    ) -> Iterator[Listed]:
        """The jobs that wait and fit, in their order, then the scheduled ones by due time; or the
        dead letters. until: none that was enqueued (or died) after it, ms."""
        expect("which", which, JobFilter, "a JobFilter")
        if not dead:
            for jobs in self._ready():
                for job in jobs:
                    if which.fits(job) and _before(job, until):
                        yield Listed(job)
        for listed, score in self._in_set("dead" if dead else "scheduled"):
            if dead and until is not None and score > until:
                return
            if which.fits(listed.job) and (dead or _before(listed.job, until)):
                yield listed

    def _ready(self) -> Iterator[list[Delivery]]:
        """Pages of ready jobs in their order, then of those behind others of their groups."""
        cursor = ""
        while True:
            page = self._run(commands.browse(self.keys, cursor, PAGE))
            yield page.jobs
            if not page.jobs or page.cursor == cursor:
                return
            cursor = page.cursor

    def _in_set(self, name: Literal["scheduled", "dead"]) -> Iterator[tuple[Listed, float]]:
        place = "-inf", ""
        while True:
            page = self._run(commands.browse_set(self.keys, name, place, PAGE))
            for entry in page.entries:
                due = int(entry.score) if name == "scheduled" else 0
                yield Listed(entry.job, due), entry.score
            if not page.more:
                return
            place = page.after

    def _named(self, ids: Sequence[str], copier: Copier) -> list[Listed]:
        """These jobs, as far as they wait or are dead; the copier notes the others."""
        found: list[Listed] = []
        for id_ in dict.fromkeys(map(check_id, ids)):
            look = self._run(commands.show(self.keys, id_))
            job = Delivery(id_, look.value)
            if look.state in ("ready", "blocked", "dead"):
                found.append(Listed(job))
            elif look.state == "scheduled":
                seen = self._run(commands.await_result(self.keys, id_, wait=False))
                found.append(Listed(job, seen.due_ms))
            else:
                copier.stays(id_, look.state if look.state in ("held", "ended") else "unknown")
        return found

    # -- where to ----------------------------------------------------------------------------------

    def _keys_of(self, queue: str) -> QueueKeys:
        return QueueKeys(queue, self.keys.namespace)

    def _copier(self, target: str) -> Copier:
        """Raises ConfigError where there is no such queue."""
        keys = self._keys_of(check_queue(target))
        if target == self.name:
            raise ConfigError("target", f"'{target}' is the queue itself")
        there = self._run(commands.counts(keys, oldest=False))
        if not there.meta or is_deleted(there.meta):
            raise ConfigError("target", f"there is no queue '{target}'")
        here = self._run(commands.counts(self.keys, oldest=False))
        return Copier(
            self._packer,
            JobPacker(keys, self.settings),
            Kind.parse(there.meta.get("v", "1")),
            levels=int(here.meta.get("priorities", 10)),
            now=here.now,
        )


def _limit(limit: int | None) -> float:
    if limit is None:
        return float("inf")
    if type(limit) is not int or limit < 0:
        raise ConfigError("limit", f"{shown(limit)} is no whole number from 0 on, or None")
    return limit


def _reason(reason: str) -> bytes:
    expect("reason", reason, str, "a sentence for people")
    encoded = reason.encode("utf-8", "replace")
    if len(encoded) > 2000:
        raise ConfigError("reason", f"{len(encoded)} bytes, at most 2000 fit")
    return encoded


def _before(job: Delivery, until: int | None) -> bool:
    try:
        return until is None or job.header.enqueued_ms <= until
    except Undecodable:
        return True
