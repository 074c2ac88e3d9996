"""The life of a consumer: it registers, joins again, leaves; and its calls, one script each."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rqueue.client._async.shard_course import TableSteps
from rqueue.errors import (
    ConnectionLost,
    ConsumerRefused,
    RegistrationLost,
    RQueueError,
    ServerError,
)
from rqueue.logs import logger
from rqueue.model.expect import expect
from rqueue.protocol import commands
from rqueue.protocol.browsing import Start
from rqueue.protocol.commands.consumers import Registered
from rqueue.protocol.consumer_calls import DEFAULT_LEASE_MS, ConsumerCalls, Mode, consumer_name
from rqueue.protocol.course import arun_course
from rqueue.protocol.credit import Credit, SharedCredit
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.repeats import Repeats
from rqueue.transport.async_connection import AsyncConnection
from rqueue.transport.async_lease_renewer import AsyncLeaseRenewer
from rqueue.transport.async_routed_connection import async_connection_for
from rqueue.transport.async_wake_listener import AsyncWakeListener

if TYPE_CHECKING:
    import redis.asyncio

log = logger("rqueue")


class AsyncConsumerLife(ConsumerCalls):
    """What a consumer is beside its steps; see `AsyncConsumer`."""

    def __init__(
        self,
        client: redis.asyncio.Redis,
        keys: QueueKeys,
        *,
        name: str = "",
        jobs: int = 1,
        bytes: int = 0,
        credit: Credit | SharedCredit | None = None,
        priority: int = 0,
        mode: Mode = "acquire",
        lease_ms: int = DEFAULT_LEASE_MS,
        slots: int = 1,
        worker: str = "",
        history: bool = True,
        start: Start = "head",
        auto_close: bool = False,
        renew: bool = True,
        select: str = "",
        connection: AsyncConnection | None = None,
        listener: AsyncWakeListener | None = None,
        table_steps: TableSteps | None = None,
    ) -> None:
        super().__init__(
            keys,
            name=name,
            jobs=jobs,
            bytes=bytes,
            credit=credit,
            priority=priority,
            mode=mode,
            lease_ms=lease_ms,
            slots=slots,
            worker=worker,
            history=history,
            start=start,
            auto_close=auto_close,
            select=select,
        )
        self._client = client
        expect("renew", renew, bool, "True or False")
        expect("history", history, bool, "True or False")
        self._renews = renew
        self._table_steps = table_steps
        self._renewer: AsyncLeaseRenewer | None = None
        self._own_connection = connection is None
        self._connection = async_connection_for(client, keys) if connection is None else connection
        self._own_listener = listener is None
        self._data_lost = False
        self._listener = listener

    # -- life --------------------------------------------------------------------------------------

    async def register(self) -> Self:
        """Join the queue with a lease and a new term. A server that gives no connection is tried
        again a few times. Raises LifecycleError if it is joined, and the server errors."""
        try:
            reply = await self._registered()
        except ConsumerRefused:
            if not await arun_course(self._state.making_way(self.lease_ms), self._call):
                raise
            reply = await self._registered()
        self._data_lost = not self._state.registered(reply)
        self._lost = False
        if self._listener is None:
            self._listener = AsyncWakeListener(
                async_connection_for(self._client, self._state.keys, timeout=None)
            )
        self._listener.add(self._state.name, self._state.keys.wake(self._state.name))
        if self._renews:
            self._renewer = AsyncLeaseRenewer(
                self._client,
                self._state.keys,
                [self._state.name],
                self.lease_ms,
                self.connection,
                self._see_to_table,
                self._listener.doubt,
            )
            self._renewer.start()
        if self.mode == "browse" and self._view.begin(self._state.now):
            self._browsed(await self._run(self._browse_call(1)))
            self._view.more = True
        return self

    async def _see_to_table(self) -> None:
        """Of a shard: do what the table asks for, as pools do with each renewal. If that fails, the
        next renewal tries again."""
        if self._table_steps is None:
            return
        try:
            await self._table_steps()
        except RQueueError as error:
            log.debug("queue %s: its table of shards: %s", self._state.keys.queue, error)

    async def _registered(self) -> Registered:
        repeats = Repeats()
        while True:
            try:
                joined: Registered = await self._call(self._register_call())
                return joined
            except ServerError as error:
                if error.outcome_unknown:
                    raise
                pause = repeats.pause(error)
            if pause:
                await asyncio.sleep(pause)

    async def rejoin(self) -> None:
        """After the registration was lost: join again, under a new name, holding nothing."""
        await self._leave()
        self._state.name = consumer_name(self._state.name.rsplit(":", 2)[0])
        await self.register()

    async def close(self) -> None:
        """Leave the queue: what is held is released, uncounted, to its place (X-21). A second
        close, or one after the lease ended, does nothing."""
        self._lost = False
        try:
            if self._state.term:
                await self._part()
        finally:
            if self._state.credit is not None:
                self._state.credit.leave()
            if self._own_listener and self._listener is not None:
                await self._listener.close()
            if self._own_connection:
                await self._connection.close()

    async def _part(self) -> None:
        try:
            try:
                await self._unregister()
            except ConnectionLost:
                await self._unregister()  # over a new connection: it may be sent twice
        except RegistrationLost:
            pass  # everything went back already
        finally:
            await self._leave()

    async def _unregister(self) -> None:
        call = self._state.unregister_call()
        while (await self._call(call)).held:
            pass

    async def _leave(self) -> None:
        self._forget()
        renewer, self._renewer = self._renewer, None
        if renewer is not None:
            await renewer.stop()
        if self._listener is not None:
            self._listener.remove(self._state.keys.wake(self._state.name))

    async def __aenter__(self) -> Self:
        if self._state.term:
            return self
        try:
            return await self.register()
        except BaseException:
            with suppress(RQueueError):  # the end of its lease releases what this did not
                await self.close()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # -- inside ------------------------------------------------------------------------------------

    async def _run(self, call: commands.ScriptCall[Any]) -> Any:
        try:
            return await self._call(call)
        except RegistrationLost:
            await self._lose()
            raise

    async def _lose(self) -> None:
        self._lost = True
        self.connection.loses()
        await self._leave()

    async def _call(self, call: commands.ScriptCall[Any]) -> Any:
        try:
            answer = await self._connection.run(
                call, queue=self._state.keys.queue, consumer=self._state.name
            )
        except RQueueError as error:
            self.connection.fails(error)
            raise
        self.connection.works()
        return answer
