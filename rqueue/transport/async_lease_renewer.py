"""Renewing the lease of a consumer from a task of its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from rqueue.errors import ConnectionLost, RedisTimeout, RQueueError
from rqueue.logs import logger
from rqueue.model.connection_state import ConnectionStates
from rqueue.protocol import commands
from rqueue.protocol.crash_report import log_died
from rqueue.protocol.forwarding import aforward_soon
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.scheduling import arefill_soon
from rqueue.transport.async_connection import end
from rqueue.transport.async_routed_connection import async_connection_for
from rqueue.transport.lease_renewer import RenewalPace

if TYPE_CHECKING:
    import redis.asyncio

log = logger("rqueue")


class AsyncLeaseRenewer:
    """Renews the leases of some consumers of one queue from a task of this loop.

    A job that blocks the loop for longer than a lease stops this task too: the lease ends, and the
    settle is refused. renewed: called after each renewal; silent: when one
    found no server, or had no answer in time. They raise nothing. `ended`: no lease is left to
    renew. `task` is done then.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        keys: QueueKeys,
        consumers: Sequence[str],
        lease_ms: int,
        states: ConnectionStates,
        renewed: Callable[[], Awaitable[None]],
        silent: Callable[[], None],
    ) -> None:
        self._pace = RenewalPace(lease_ms)
        self._connection = async_connection_for(client, keys, self._pace.answer_within)
        self._keys = keys
        self._consumers = list(consumers)
        self._lease_ms = lease_ms
        self._states = states
        self._renewed = renewed
        self._silent = silent
        self.ended = False
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to renew."""
        self.task = asyncio.create_task(self._renew(), name="rqueue-renew")

    async def stop(self) -> None:
        """Renew no more; the leases end by themselves unless the consumers leave."""
        if self.task is not None:
            await end(self.task)

    async def _renew(self) -> None:
        pause = self._pace.interval
        try:
            while True:
                await asyncio.sleep(pause)
                try:
                    renewed = await self._connection.run(
                        commands.renew(self._keys, self._lease_ms, self._consumers)
                    )
                except RQueueError as error:  # a damaged queue too may be repaired
                    self._states.fails(error)
                    if not self._pace.failing:
                        log.warning("cannot renew leases in queue %s: %s", self._keys.queue, error)
                        if isinstance(error, ConnectionLost | RedisTimeout):
                            self._silent()
                    pause = self._pace.failed()
                    continue
                pause = self._pace.answered(renewed)
                log_died(log, self._keys.queue, renewed.died)
                if renewed.outgoing:
                    await aforward_soon(self._connection.run, self._keys)
                if renewed.lacking:
                    run, names = self._connection.run, renewed.lacking
                    await arefill_soon(run, self._keys, names)
                for name in renewed.gone:
                    self._consumers.remove(name)
                    log.warning(
                        "the lease of consumer %s in queue %s ended", name, self._keys.queue
                    )
                if not self._consumers:
                    self.ended = True
                    self._states.loses()
                    return
                self._states.works()
                await self._renewed()
        finally:
            await self._connection.close()
