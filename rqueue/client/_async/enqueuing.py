"""Enqueue calls of a queue: many jobs at once, and the wait for room in a bounded queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.errors import QueueFull, ServerError
from rqueue.model.expect import expect_number
from rqueue.protocol import commands
from rqueue.protocol.commands.enqueue import Accepted, Put
from rqueue.protocol.job_packer import Call
from rqueue.protocol.room_wait import RoomWait, piece_of
from rqueue.protocol.twin_ids import renamed
from rqueue.tasks.context import current_job
from rqueue.transport.task_connections import AsyncFlight

__all__ = ["AsyncEnqueuing"]


class AsyncEnqueuing(AsyncQueueCalls):
    """A queue that jobs are enqueued into, as far as that is the same for one and for many."""

    async def enqueue_many(
        self, calls: Iterable[Call], *, max_wait: float | None = None
    ) -> list[AsyncJobHandle[Any]]:
        """Enqueue many calls, in order, hundreds in one step (C-20 without its shared fate: each
        is a job of its own). A step is atomic: all its jobs or, on an error, none. `max_wait`:
        seconds that each step may wait for room in a bounded queue whose producers wait (None: the
        setting); a step that is larger than such a queue goes in smaller ones (Q-67)."""
        if max_wait is not None:
            expect_number("max_wait", max_wait, "a number of seconds")
        handles: list[AsyncJobHandle[Any]] = []
        sent: tuple[list[tuple[Put, bool]], AsyncFlight[Accepted]] | None = None
        try:
            for batch in self._packer.batches(calls):  # packed while the one before is under way
                if sent is not None:
                    earlier, sent = sent, None
                    handles += await self._stored(*earlier, max_wait)
                call = commands.enqueue(self.keys, [put for put, _ in batch])
                sent = batch, await self._transport.begin(call)
        finally:
            if sent is not None:
                handles += await self._stored(*sent, max_wait)
        return handles

    async def _stored(
        self,
        batch: list[tuple[Put, bool]],
        flight: AsyncFlight[Accepted],
        max_wait: float | None,
    ) -> list[AsyncJobHandle[Any]]:
        try:
            accepted = await self._transport.finish(flight, queue=self.name)
        except QueueFull as full:
            accepted = await self._in_pieces([put for put, _ in batch], full, max_wait)
        if not self._looked:
            await self._look_once()
        return await self._handles(batch, accepted)

    async def _handles(
        self, batch: list[tuple[Put, bool]], accepted: Accepted
    ) -> list[AsyncJobHandle[Any]]:
        """The handles of jobs that were enqueued together; those that have an id of another
        process's job get another one first."""
        known = set(accepted.known)
        others = {one.place: one for one in accepted.answered}
        while twins := renamed(batch, accepted, self.name):
            answer = await self.enqueue_puts([batch[index][0] for index in twins])
            accepted = answer.of(twins)
            others |= {one.place: one for one in accepted.answered}
        return [
            AsyncJobHandle(self, put.id, created=own or index not in known)
            if (other := others.get(index)) is None
            else AsyncJobHandle(self, other.id, created=False, conflict=other.state)
            for index, (put, own) in enumerate(batch)
        ]

    async def _in_pieces(
        self, puts: list[Put], full: QueueFull, max_wait: float | None
    ) -> Accepted:
        """The answer about jobs that a full queue has refused together."""
        if not (full.never and full.waits):
            return await self._when_room(commands.enqueue(self.keys, puts), full, max_wait)
        whole, size = Accepted(0, 0, (), ""), piece_of(full)
        for start in range(0, len(puts), size):
            piece = puts[start : start + size]
            answer = await self._enqueued(commands.enqueue(self.keys, piece), max_wait)
            known = tuple(start + index for index in answer.known)
            whole = Accepted(
                answer.now,
                whole.accepted + answer.accepted,
                whole.known + known,
                answer.handed_to,
                whole.again or answer.again,
                whole.answered
                + tuple(one._replace(place=start + one.place) for one in answer.answered),
            )
        return whole

    async def enqueue_puts(self, puts: Sequence[Put]) -> Accepted:
        """Enqueue jobs that are packed already, at most 1000: for pipelines, and for what
        background puts could not store."""
        call = commands.enqueue(self.keys, self._packer.signed_puts(puts))
        return await self._enqueued(call, None)

    async def _enqueued(
        self, call: commands.ScriptCall[Accepted], max_wait: float | None
    ) -> Accepted:
        """The answer to an enqueue. Where the queue is full it is waited for, for at most
        `max_wait` seconds (None: the setting), except by a job of this queue: if all did, nobody
        would make room."""
        try:
            return await self._run(call)
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
