"""What people do with many jobs that wait: move or copy them into another queue, expire, reject or
cancel them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rqueue.client._async.job_selection import AsyncJobSelection, limit_of
from rqueue.client._async.queue_steering import READ_AGAIN
from rqueue.errors import ConfigError, UnknownQueue
from rqueue.model.expect import expect
from rqueue.model.ids import check_id
from rqueue.model.job_count import JobCount
from rqueue.model.job_filter import ANY, JobFilter
from rqueue.model.names import check_queue
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import CANCELLED_FROM, MOVE_MAX
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.departures import departure
from rqueue.protocol.forwarding import aforward
from rqueue.protocol.job_packer import JobPacker
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.moving import Copier, Listed, pieces, slices
from rqueue.protocol.policies import Kind
from rqueue.protocol.sharding import refuse_spread
from rqueue.text.numbers import many

__all__ = ["AsyncQueueMoving"]

DEAD = "it is a dead letter, which goes only with dead=True (--dead)"
"""Why a dead letter stays."""

DEAD_THERE = "it is a dead letter, and would run there"
"""Why a dead letter does not go with its queue's jobs."""


class AsyncQueueMoving(AsyncJobSelection):
    """The administration of many jobs. Each call returns how many it changed, a number whose
    `stayed` says of the others why they stayed as they are (`JobCount`)."""

    async def move(self, target: str, *ids: str, dead: bool = False) -> JobCount:
        """Move jobs that wait into another queue (Q-69); returns how many went.

        dead: dead letters among them too, which are jobs that run there; else they stay.
        They keep their ids, priorities, due times, limits, labels, unique keys and what is left of
        their times to live, and their groups and keys where the target has such; attempts begin at
        nothing. Each leaves in one step and is enqueued there once, at the tail, in the order given
        here; if this call is interrupted the rest stays, and what has left arrives all the same.
        What a consumer holds stays with it, and what the target knows already (another job of that
        id, or of that unique key) stays too, and so does one whose time to live ends before it is
        due. The history of this queue says `moved`, and so does `JobHandle.state`.
        Raises UnknownQueue where there is no such queue (`Queue(target).configure()` makes it), and
        Forged for a job whose signature does not hold.
        """
        copier = await self._copier(target)
        done = await self._move(target, copier, await self._going(ids, copier, dead))
        return JobCount(done, copier.stayed)

    async def move_all(
        self,
        target: str,
        which: JobFilter = ANY,
        *,
        limit: int | None = None,
        dead: bool = False,
    ) -> JobCount:
        """Move all jobs that wait and fit, or the first `limit` of them, into another queue, in
        their order (Q-69, ASC-29); dead: the dead letters instead, to run there. What is enqueued
        meanwhile stays. See `move`."""
        copier = await self._copier(target)

        async def move(jobs: Sequence[Listed]) -> JobCount:
            return JobCount(await self._move(target, copier, jobs))

        done = await self._each_window(which, limit, move, dead=dead)
        return JobCount(done, copier.stayed)

    async def copy(self, target: str, *ids: str, dead: bool = False) -> JobCount:
        """Copy jobs that wait into another queue (Q-69); returns how many are new there. dead: dead
        letters too, as `move` does. A copy has the id of its original, so a copy that is made twice
        is one job; else see `move`. Raises QueueFull."""
        copier = await self._copier(target)
        done = await self._copy(target, copier, await self._going(ids, copier, dead))
        return JobCount(done, copier.stayed)

    async def copy_all(
        self,
        target: str,
        which: JobFilter = ANY,
        *,
        limit: int | None = None,
        dead: bool = False,
    ) -> JobCount:
        """Copy all jobs that wait and fit, or the first `limit` of them; see `copy`."""
        copier = await self._copier(target)
        left, done = limit_of(limit), 0
        piece: list[Listed] = []
        async for listed in self._listed(which, dead=dead):
            if not left:
                break
            left -= 1
            piece.append(listed)
            if len(piece) == MOVE_MAX:
                done += await self._copy(target, copier, piece)
                piece = []
        return JobCount(done + await self._copy(target, copier, piece), copier.stayed)

    async def expire(self, *ids: str) -> JobCount:
        """End jobs that wait as expired, whatever time to live they have (A-38); returns how many.
        They go where expired jobs of this queue go: they end, become dead letters, or leave for
        `expired_to`. Held jobs stay with their consumers."""
        return await self._expire(ids)

    async def expire_all(self, which: JobFilter = ANY, *, limit: int | None = None) -> JobCount:
        """`expire` for all jobs that wait and fit, or the first `limit` of them."""

        async def expire(jobs: Sequence[Listed]) -> JobCount:
            return await self._expire([listed.job.id for listed in jobs])

        return await self._each_window(which, limit, expire)

    async def reject(self, *ids: str, reason: str = "") -> JobCount:
        """Make dead letters of jobs that wait (A-38), here or where dead letters of this queue go;
        returns how many. Held jobs stay with their consumers. reason: for people, at most 2000
        bytes. `rqueue dead requeue` gives them another life."""
        return await self._reject(ids, _reason(reason))

    async def reject_all(
        self, which: JobFilter = ANY, *, limit: int | None = None, reason: str = ""
    ) -> JobCount:
        """`reject` for all jobs that wait and fit, or the first `limit` of them."""
        why = _reason(reason)

        async def reject(jobs: Sequence[Listed]) -> JobCount:
            return await self._reject([listed.job.id for listed in jobs], why)

        return await self._each_window(which, limit, reject)

    async def cancel_all(self, which: JobFilter = ANY, *, limit: int | None = None) -> JobCount:
        """Cancel all jobs that wait and fit, or the first `limit` of them (A-38); returns how many.
        Held jobs are left alone."""

        async def cancel(jobs: Sequence[Listed]) -> JobCount:
            answers = []
            for listed in jobs:
                call = commands.cancel(self.keys, listed.job.id, held=False)
                answers.append((listed.job.id, await self._run(call)))
            return JobCount.of(answers, CANCELLED_FROM)

        return await self._each_window(which, limit, cancel)

    # -- steps -------------------------------------------------------------------------------------

    async def _expire(self, ids: Sequence[str]) -> JobCount:
        done = JobCount()
        for some in pieces([check_id(id_) for id_ in ids]):
            answers = await self._run(commands.expire(self.keys, some))
            done += JobCount.of(zip(some, answers, strict=True), ["expired"])
        return await self._sent_on(done)

    async def _reject(self, ids: Sequence[str], reason: bytes) -> JobCount:
        done = JobCount()
        for some in pieces([check_id(id_) for id_ in ids]):
            answers = await self._run(commands.reject(self.keys, some, reason))
            done += JobCount.of(zip(some, answers, strict=True), ["rejected"])
        return await self._sent_on(done)

    async def _sent_on(self, done: JobCount) -> JobCount:
        """Dead letters and expired jobs may be on their way to another queue."""
        if done:
            await aforward(self._run, self.keys)
        return done

    async def _going(self, ids: Sequence[str], copier: Copier, dead: bool) -> list[Listed]:
        """These jobs, as far as they wait, or are dead and `dead` says that those are meant too."""
        found, others = await self._named(ids, dead=dead)
        for id_, state in others.items():
            copier.stays(id_, DEAD if state == "dead" else state)
        return found

    async def _move(self, target: str, copier: Copier, jobs: Sequence[Listed]) -> int:
        done, again = 0, list(jobs)
        copier.now = await self._now()
        for _ in range(READ_AGAIN):
            changed: list[str] = []
            free = await self._not_known(target, copier, filter(copier.takes, again))
            for some in slices(copier.of(listed, "moved") for listed in free):
                call = commands.move(self.keys, target, copier.now, some)
                answers = await self._run(call)
                done += answers.count("moved")
                for job, was in zip(some, answers, strict=True):
                    if was == "other":
                        changed.append(job.id)
                    elif was != "moved":
                        copier.stays(job.id, was)
                if "moved" in answers:
                    await aforward(self._run, self.keys)
            again = await self._going(changed, copier, True)
            if not again:
                return done
        for listed in again:
            copier.stays(listed.job.id, "other")
        return done

    async def _refused_by(self, target: str) -> dict[str, str]:
        """The jobs of this queue that the target would not take as they are, each with the reason,
        as far as that is known before they go. Dead letters would run there, and stay."""
        copier = await self._copier(target)
        piece: list[Listed] = []
        async for listed in self._listed(ANY):
            if copier.takes(listed):
                piece.append(listed)
            if len(piece) == MOVE_MAX:
                await self._not_known(target, copier, piece)
                piece = []
        await self._not_known(target, copier, piece)
        async for listed in self._listed(ANY, dead=True):
            copier.stays(listed.job.id, DEAD_THERE)
        if waiting := (await self._run(commands.counts(self.keys))).more.get("deferred"):
            copier.stays(f"{many(waiting, 'job')} of workflows", "deferred")
        return copier.stayed

    async def _copy(self, target: str, copier: Copier, jobs: Sequence[Listed]) -> int:
        done = 0
        copier.now = await self._now()
        for some in slices(copier.of(one, "copied") for one in filter(copier.takes, jobs)):
            flat = [part for job in some for part in (job.id, job.envelope)]
            terms = [job.terms for job in some]
            call = commands.enqueue_flat(self._keys_of(target), flat, terms)
            answer = await self._run(call)
            done += answer.accepted
            for place in answer.known:
                copier.stays(some[place].id, "known")
            for other in answer.answered:
                copier.stays_for(some[other.place].id, other.id)
        return done

    async def _now(self) -> int:
        """What is left of a job's times counts from here, however long the whole call takes."""
        return (await self._run(commands.counts(self.keys, oldest=False))).now

    async def _not_known(self, target: str, copier: Copier, jobs: Iterable[Listed]) -> list[Listed]:
        """Those whose ids and unique keys the target takes: it keeps a job of its own of such an
        id, and this one would be lost."""
        free: list[Listed] = []
        going: dict[str, str] = {}  # unique keys of those before, which are not there yet
        for some in pieces(list(jobs)):
            left = [
                (listed.job.id, departure(self._packer.envelope(listed.job).opts, target))
                for listed in some
            ]
            words = await self._run(commands.readmit(self._keys_of(target), left, look=True))
            new: list[Listed] = []
            for listed, was in zip(some, words, strict=True):
                if was == "known":
                    copier.stays(listed.job.id, was)
                else:
                    new.append(listed)
            owners = await self._owners(target, [key for key in map(copier.key_of, new) if key])
            for listed in new:
                key, id_ = copier.key_of(listed), listed.job.id
                owner = key and (owners[key] or going.setdefault(key, id_))
                if owner and owner != id_:
                    copier.stays_for(id_, owner)
                else:
                    free.append(listed)
        return free

    async def _owners(self, target: str, unique: Sequence[str]) -> dict[str, str]:
        """The ids of the jobs that have these unique keys in the target; "" where none has."""
        if not unique:
            return {}
        owners = await self._run(commands.key_owners(self._keys_of(target), unique))
        return dict(zip(unique, owners, strict=True))

    # -- where to ----------------------------------------------------------------------------------

    def _keys_of(self, queue: str) -> QueueKeys:
        return QueueKeys(queue, self.keys.namespace)

    async def _copier(self, target: str) -> Copier:
        """Raises UnknownQueue where there is none, ConfigError for the queue itself, and
        QueueSharded where one of the two has its jobs in shards."""
        keys = self._keys_of(check_queue(target))
        if target == self.name:
            raise ConfigError("target", f"'{target}' is the queue itself")
        there = await self._run(commands.counts(keys, oldest=False))
        if not is_there(there):
            raise UnknownQueue(
                target,
                f"make it before jobs go there: rqueue configure {target} --kind plain, or"
                f" Queue('{target}').configure()",
            )
        here = await self._run(commands.counts(self.keys, oldest=False))
        refuse_spread(keys)
        refuse_spread(self.keys)
        return Copier(
            self._packer,
            JobPacker(keys, self.settings),
            Kind.parse(there.meta.get("v", "1")),
            levels=int(here.meta.get("priorities", 10)),
            now=here.now,
        )


def _reason(reason: str) -> bytes:
    expect("reason", reason, str, "a sentence for people")
    encoded = reason.encode("utf-8", "replace")
    if len(encoded) > 2000:
        raise ConfigError("reason", f"{len(encoded)} bytes, at most 2000 fit")
    return encoded
