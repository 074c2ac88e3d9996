"""The step of the consumer protocol that settles jobs and enqueues others."""

from __future__ import annotations

from collections.abc import Sequence

from rqueue.client._async.consumer_steps import AsyncConsumerSteps
from rqueue.errors import RegistrationLost
from rqueue.protocol.commands.commit import Committed
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.commands.settle import Pulled
from rqueue.protocol.forwarding import aforward_soon, sends_on
from rqueue.protocol.transaction_parts import TransactionParts
from rqueue.transport.task_connections import TaskConnections

__all__ = ["AsyncConsumerCommit"]


class AsyncConsumerCommit(AsyncConsumerSteps):
    """A consumer whose jobs a transaction may settle."""

    async def _commit(
        self, parts: TransactionParts, puts: Sequence[Put], transport: TaskConnections
    ) -> Committed:
        """Settle jobs and enqueue others in one step; what `AsyncTransaction` calls. Where it is
        refused, or fails, the jobs are held as before. Raises RegistrationLost and the server
        errors."""
        self._state.joined()
        settling = self._settled(
            parts.ack, parts.done, parts.retries, parts.reject, parts.release, b"", 0
        )
        name, queue = self._state.name, self._state.keys.queue
        try:
            if (narrow := self._state.narrow_window()) is not None:
                self._state.state = await self._run(self._state.interest_call(narrow))
            call = parts.call(self._state.keys, puts, name, self._state.term, settling)
            committed = await transport.run(call, queue=queue, consumer=name)
        except RegistrationLost:
            self._lost = True
            await self._leave()
            raise
        except BaseException:
            self._unsettle(settling)
            raise
        stale = [id_.encode("utf-8", "surrogateescape") for id_ in committed.stale]
        if stale and not committed.done_before(len(puts)):
            self._unsettle(settling)
            for id_ in stale:
                self._state.drop(id_)
        self._take(
            Pulled(committed.now, committed.state or self._state.state, -1, stale, b"", []),
            asked=False,
        )
        if sends_on(self._state.keys):
            await aforward_soon(self._connection.run, self._state.keys)
        if self._listener is not None:  # async
            self._listener.poke()  # async: another task may wait for room
        if (again := self._state.reopened_window()) is not None:
            self._state.state = await self._run(self._state.interest_call(again))
        if self._leaving and not self._state.unsettled:
            await self.close()
        return committed
