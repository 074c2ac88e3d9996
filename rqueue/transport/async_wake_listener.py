"""Waiting for wake-ups on the wake lists of one or many consumers, for asyncio."""

from __future__ import annotations

import asyncio

from redis import exceptions as rx

from rqueue.errors import ConnectionLost, RedisTimeout, ServerError
from rqueue.protocol.wake import RECONNECTED, Wake
from rqueue.transport.async_connection import AsyncConnection, end
from rqueue.transport.async_lease_renewer import AsyncLeaseRenewer
from rqueue.transport.wake_listener import LISTEN_S, SLACK_S, unblocked


class AsyncWakeListener:
    """Blocks on wake lists. One waiting task at a time; `add` and `remove` between waits.

    The blocked command is read by a task of its own, which outlives the end of a wait and its
    cancellation: what Redis took off a list is never dropped on the floor.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._keys: dict[bytes, str] = {}
        self._reader: asyncio.Task[list[Wake]] | None = None
        self._stale = False
        self._kept: list[Wake] = []
        self._poked = asyncio.Event()

    def add(self, consumer: str, wake_key: str) -> None:
        """Listen for this consumer too."""
        self._keys[wake_key.encode()] = consumer
        self._disarm()

    def remove(self, wake_key: str) -> None:
        """Do not listen for it any more."""
        if self._keys.pop(wake_key.encode(), None) is not None:
            self._disarm()

    def poke(self) -> None:
        """End the wait that is under way, or the next one: something else happened."""
        self._poked.set()

    def doubt(self) -> None:
        """The server may be gone without a word: end the wait that is under way, with its
        connection."""
        self._connection.abort()

    async def close(self) -> None:
        """Close the connection; a wait after that opens it again."""
        reader = self._disarm()
        if reader is not None:
            await end(reader)
        await self._connection.close()

    async def wait(
        self, timeout: float | None, interrupt: AsyncLeaseRenewer | None = None
    ) -> list[Wake]:
        """Wait for the next wake-up, at most `timeout` seconds (None: for ever); [] at the end.

        interrupt: a renewer; the wait ends when it does. A lost connection is one "reconnected" per
        consumer, once it is back; while Redis cannot be reached, or refuses, the error of
        `rqueue.errors` is raised: it is for the caller to pause before the next try.
        """
        if not self._keys:
            raise ValueError("nothing to listen to")
        if self._kept:
            kept, self._kept = self._kept, []
            return kept
        if self._reader is None:
            # sent before anything is awaited on it, so that "reconnected" means: listening again
            try:
                await self._connection.send(("BLPOP", *self._keys, LISTEN_S))
            except BaseException:
                self._stale = True  # of a command that was sent, or half of it, the answer is lost
                raise
            self._reader = asyncio.create_task(self._read(dict(self._keys)))
        if self._stale:
            self._stale = False
            return [Wake(consumer, RECONNECTED) for consumer in self._keys.values()]
        reader, poke = self._reader, asyncio.ensure_future(self._poked.wait())
        ends = {reader, poke}
        if interrupt is not None and interrupt.task is not None:
            ends.add(interrupt.task)
        try:
            await asyncio.wait(ends, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            poke.cancel()
        self._poked.clear()
        if not reader.done() or reader is not self._reader:
            return []  # poked, or taken back meanwhile: another consumer left
        self._reader = None
        return reader.result()

    async def _read(self, keys: dict[bytes, str]) -> list[Wake]:
        try:
            async with asyncio.timeout(LISTEN_S + SLACK_S):
                reply = await self._connection.read(blocked=True)
        except TimeoutError as error:
            self._stale = True
            raise RedisTimeout("no answer from Redis in time", url=self._connection.url) from error
        except rx.ResponseError as error:
            self._stale = True
            self._connection.abort()
            meant = self._connection.meant(error)
            if unblocked(error, meant):
                return []
            raise meant from error
        except (ConnectionLost, RedisTimeout):
            self._stale = True  # look again, over a new connection
            return []
        except ServerError:
            self._stale = True
            raise
        if reply is None:
            return []
        key, element = reply
        return [Wake(keys[key], element)]

    def _disarm(self) -> asyncio.Task[list[Wake]] | None:
        """Take the blocked command back, which names the old keys: by closing the connection."""
        reader, self._reader = self._reader, None
        if reader is None:
            return None
        if reader.done():
            if not reader.cancelled() and reader.exception() is None:
                self._kept += [wake for wake in reader.result() if wake.consumer in self._consumers]
            return None
        reader.cancel()
        self._connection.abort()
        return reader

    @property
    def _consumers(self) -> set[str]:
        return set(self._keys.values())
