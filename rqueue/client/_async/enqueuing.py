"""Enqueue calls of a queue: many jobs at once, and the wait for room in a bounded queue."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.client._async.shards import AsyncShards, Begun
from rqueue.errors import QueueFull, QueueSharded, ServerError
from rqueue.model.confirmation import Unconfirmed
from rqueue.model.expect import expect_number
from rqueue.protocol import commands
from rqueue.protocol.commands.enqueue import Accepted, Put
from rqueue.protocol.commands.shards import of_version
from rqueue.protocol.job_packer import Batch, Call, Packed, each_of
from rqueue.protocol.room_wait import RoomWait, piece_of
from rqueue.protocol.twin_ids import another_id, renamed
from rqueue.tasks.context import current_job
from rqueue.tasks.request import JobRequest
from rqueue.transport.task_connections import AsyncFlight

__all__ = ["AsyncEnqueuing"]


class AsyncEnqueuing(AsyncQueueCalls):
    """A queue that jobs are enqueued into, as far as that is the same for one and for many."""

    _shards: AsyncShards[Any] | None = None

    def at(self, name: str) -> AsyncEnqueuing:
        """Another queue over the same connections."""
        raise NotImplementedError

    async def enqueue_many(
        self, calls: Iterable[Call], *, max_wait: float | None = None
    ) -> list[AsyncJobHandle[Any]]:
        """Enqueue many calls, in order, hundreds in one step (C-20 without its shared fate: each
        is a job of its own). A step is atomic: all its jobs or, on an error, none; but NotConfirmed
        says of the jobs of a step that they are stored. No later step is sent then: of a queue that
        is spread, those at other servers may be under way, and are done. `max_wait`: seconds that
        each step may wait for room in a bounded queue whose producers wait (None: the setting); a
        step that is larger than such a queue goes in smaller ones (Q-67)."""
        if max_wait is not None:
            expect_number("max_wait", max_wait, "a number of seconds")
        handles: list[AsyncJobHandle[Any]] = []
        calls = each_of(calls)
        if self._shards is not None:
            return await self._spread_many(self._shards, calls, max_wait)
        sent: tuple[Batch, AsyncFlight[Accepted]] | None = None
        try:
            for batch in self._packer.batches(calls):  # packed while the one before is under way
                if sent is not None:
                    earlier, sent = sent, None
                    handles += await self._stored(*earlier, max_wait)
                if (learned := self._learned()) is not None:
                    handles += await learned.store(batch, max_wait)
                    break
                sent = batch, await self.begin_here(batch)
        finally:
            if sent is not None:
                handles += await self._stored(*sent, max_wait)
        if (learned := self._learned()) is not None:  # all that is left is packed for the shards
            handles += await self._spread_many(learned, calls, max_wait)
        return handles

    async def _spread_many(
        self, shards: AsyncShards[Any], calls: Iterable[Call], max_wait: float | None
    ) -> list[AsyncJobHandle[Any]]:
        """The same into the shards of this queue: at each server a step is under way while the next
        jobs are packed."""
        handles: list[AsyncJobHandle[Any]] = []
        sent: Begun | None = None
        try:
            for batch in self._packer.batches(calls, await shards.most(), spread=True):
                if sent is not None:
                    earlier, sent = sent, None
                    handles += await shards.finish(earlier)
                sent = await shards.begin(batch, max_wait)
        finally:
            if sent is not None:
                handles += await shards.finish(sent)
        return handles

    async def _stored(
        self,
        batch: Batch,
        flight: AsyncFlight[Accepted],
        max_wait: float | None,
    ) -> list[AsyncJobHandle[Any]]:
        try:
            return await self.finish_here(batch, flight, max_wait)
        except QueueSharded:
            return await self._spread().store(batch, max_wait)

    async def begin_here(self, batch: Batch) -> AsyncFlight[Accepted]:
        """Send jobs to this very queue and do not wait: `finish_here` has the answer."""
        if batch.confirm is not None:
            await self._check_confirmable(batch.confirm)
        return await self._transport.begin(batch.call(self.keys))

    async def finish_here(
        self, batch: Batch, flight: AsyncFlight[Accepted], max_wait: float | None
    ) -> list[AsyncJobHandle[Any]]:
        """What came of jobs that were sent to this very queue. Raises ShardsChanged where it is a
        shard, QueueSharded where it has some, and as `enqueue_many`."""
        try:
            accepted = await self._transport.finish(flight, queue=self.name)
        except QueueFull as full:
            accepted = await self._in_pieces(batch, full, max_wait)
        return await self._confirmed(batch, accepted)

    def drop(self, flight: AsyncFlight[Accepted]) -> None:
        """Nobody waits for what was sent."""
        self._transport.drop(flight)

    @property
    def server(self) -> Hashable:
        """What is one for all queues whose calls one server answers, over the same connections."""
        return self._transport.server_of(self.keys.meta)

    def _learned(self) -> AsyncShards[Any] | None:
        """The shards, where the answer to a call has named them by now."""
        return self._shards

    def _spread(self) -> AsyncShards[Any]:
        """This queue has shards, as one of its calls has learned: its jobs go there from now on."""
        if self._shards is None:
            self._shards = AsyncShards[Any](self)
        return self._shards

    async def holder(self, id: str) -> AsyncQueueCalls:
        """The queue of the shard that knows a job; the one that its id says where none does. Raises
        the server errors, and ConnectionLost where it may be in a shard that cannot be asked."""
        found: AsyncQueueCalls = await self._spread().holder(id)
        return found

    async def shards_left(self) -> list[str]:
        """The shards that this queue has still, of one that is spread: none where its table is
        gone. Raises the server errors."""
        try:
            return await self._spread().left()
        except QueueSharded:
            return []

    async def close(self) -> None:
        """Close the connections that this queue opened."""
        if self._shards is not None:
            await self._shards.close()
        await super().close()

    async def _confirmed(self, batch: Batch, accepted: Accepted) -> list[AsyncJobHandle[Any]]:
        handles, unconfirmed = await self._handles(batch, accepted)
        if unconfirmed is not None:
            self._require_confirmed(unconfirmed, [handle.id for handle in handles])
        return handles

    async def _handles(
        self, batch: Batch, accepted: Accepted
    ) -> tuple[list[AsyncJobHandle[Any]], Unconfirmed | None]:
        """The handles of jobs that were enqueued together, and what is missing of their
        confirmation; those that have an id of another process's job get another one first."""
        known, unconfirmed = set(accepted.known), accepted.unconfirmed
        others = {one.place: one for one in accepted.answered}
        while twins := renamed(batch.jobs, accepted, self.name):
            again = self._packer.signed_puts([batch.jobs[index][0] for index in twins])
            some = batch._replace(jobs=[(put, True) for put in again])
            answer = await self._enqueued(some.call(self.keys), None)
            accepted = answer.of(twins)
            unconfirmed = unconfirmed or accepted.unconfirmed
            others |= {one.place: one for one in accepted.answered}
        if not known and not others:  # nearly always
            return [AsyncJobHandle(self, put.id) for put, _ in batch.jobs], unconfirmed
        handles: list[AsyncJobHandle[Any]] = [
            AsyncJobHandle(self, put.id, created=own or index not in known)
            if (other := others.get(index)) is None
            else AsyncJobHandle(self, other.id, created=False, conflict=other.state)
            for index, (put, own) in enumerate(batch.jobs)
        ]
        return handles, unconfirmed

    async def _in_pieces(self, batch: Batch, full: QueueFull, max_wait: float | None) -> Accepted:
        """The answer about jobs that a full queue has refused together."""
        if not (full.never and full.waits):
            return await self._when_room(batch.call(self.keys), full, max_wait)
        whole, sizes, start = (
            Accepted(0, 0, (), ""),
            [len(put.envelope) for put, _ in batch.jobs],
            0,
        )
        while start < len(batch.jobs):
            size = piece_of(full, sizes[start:])
            piece = batch._replace(jobs=batch.jobs[start : start + size])
            answer = await self._enqueued(piece.call(self.keys), max_wait)
            known = tuple(start + index for index in answer.known)
            whole = Accepted(
                answer.now,
                whole.accepted + answer.accepted,
                whole.known + known,
                answer.handed_to,
                whole.again or answer.again,
                whole.answered
                + tuple(one._replace(place=start + one.place) for one in answer.answered),
                whole.unconfirmed or answer.unconfirmed,
            )
            start += size
        return whole

    async def enqueue_puts(self, puts: Sequence[Put]) -> Accepted:
        """Enqueue jobs that are packed already, at most 1000: for pipelines, and for what
        background puts could not store. Raises NotConfirmed where the settings want them to be
        confirmed, and they are not."""
        confirm = self._packer.confirmation()
        call = commands.enqueue(self.keys, self._packer.signed_puts(puts), confirm=confirm)
        try:
            accepted = await self._enqueued(call, None)
        except QueueSharded:
            return await self._spread().store_puts(puts)
        self._require_confirmed(accepted.unconfirmed, [put.id for put in puts])
        return accepted

    async def enqueue_request(self, request: JobRequest) -> AsyncJobHandle[Any]:
        """Enqueue what a task asks for (`rqueue.tasks.enqueuer.AsyncEnqueuer`). Its queue may be
        another than this one."""
        queue = request.queue
        target = self if not queue or queue == self.name else self.at(queue)
        packed = target._packer.pack(request)
        if target._shards is None:
            try:
                return await target.enqueue_here(packed)
            except QueueSharded:
                pass
        handle: AsyncJobHandle[Any] = await target._spread().enqueue(packed)
        return handle

    async def enqueue_here(self, packed: Packed, version: int = 0) -> AsyncJobHandle[Any]:
        """Enqueue one job into this very queue; version: of the table of shards by which it comes
        here, where this is a shard. Raises QueueSharded, ShardsChanged, and as `enqueue`."""
        id_, _, own, options = packed
        while True:
            call = self._packer.call(packed, id_)
            if version:
                call = of_version(call, version)
            answer = await self._enqueued(call, options.max_wait)
            if answer.accepted and answer.unconfirmed is None:  # nearly always
                return AsyncJobHandle(self, id_, handed_to=answer.handed_to)
            # the connection may have sent it twice: then an id made here is known from the first
            if answer.accepted or answer.again or answer.answered or not own:
                break
            id_ = another_id(id_, self.name)
        if answer.answered:
            (other,) = answer.answered
            self._require_confirmed(answer.unconfirmed, [other.id])
            return AsyncJobHandle(self, other.id, created=False, conflict=other.state)
        if answer.unconfirmed is not None:
            self._require_confirmed(answer.unconfirmed, [id_])
        created = own or answer.accepted == 1
        return AsyncJobHandle(self, id_, created=created, handed_to=answer.handed_to)

    async def _enqueued(
        self, call: commands.ScriptCall[Accepted], max_wait: float | None
    ) -> Accepted:
        """The answer to an enqueue. Where the queue is full it is waited for, for at most
        `max_wait` seconds (None: the setting), except by a job of this queue: if all did, nobody
        would make room."""
        if call.confirm is not None:
            await self._check_confirmable(call.confirm)
        try:
            return await self._transport.run(call, queue=self.name)
        except QueueFull as full:
            return await self._when_room(call, full, max_wait)

    async def _when_room(
        self, call: commands.ScriptCall[Accepted], full: QueueFull, max_wait: float | None
    ) -> Accepted:
        """The answer to an enqueue that a full queue has refused."""
        job = current_job()
        if job is not None and job.queue == self.name:
            raise full
        patience = self._transport.patience
        most = self.settings.max_wait if max_wait is None else max_wait
        wait = RoomWait(self.keys, call, full, most, patience)
        try:
            while True:
                try:
                    asked = wait.ask(), wait.block()
                    answers = await self._transport.run_then(*asked, queue=self.name)
                    if wait.may_enter(*answers):
                        return wait.entered(await self._run(wait.entry()))
                except QueueFull as again:
                    wait.refused(again)
                except ServerError as error:
                    await asyncio.sleep(wait.pause(error))
        finally:
            if not wait.over:
                # what nobody says ends by itself, some seconds later
                with suppress(ServerError):
                    await self._run(wait.give_up())
