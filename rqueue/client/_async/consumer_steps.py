"""The steps of the consumer protocol for asyncio: register, wait, pull, settle, interest, close."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rqueue.errors import ConnectionLost, ConsumerGone, RegistrationLost, ServerError
from rqueue.logs import logger
from rqueue.model.expect import expect
from rqueue.model.job import Delivery
from rqueue.model.job_order import in_order, in_turn
from rqueue.protocol import commands
from rqueue.protocol.commands.consumers import Mode
from rqueue.protocol.commands.settle import Pulled, Retried, Window
from rqueue.protocol.consumer_state import DEFAULT_LEASE_MS, ConsumerState, consumer_name
from rqueue.protocol.crash_report import log_died
from rqueue.protocol.credit import Credit, SharedCredit
from rqueue.protocol.credit_window import NO_CREDIT
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.recall import Recall
from rqueue.protocol.wake import Wake
from rqueue.transport.async_connection import AsyncConnection, end
from rqueue.transport.async_wake_listener import AsyncWakeListener
from rqueue.transport.lease_renewer import RenewalPace

if TYPE_CHECKING:
    import redis.asyncio

log = logger("rqueue")


class AsyncConsumerSteps(ConsumerState):
    """The steps, one script call each; see `AsyncConsumer`."""

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
        renew: bool = True,
        connection: AsyncConnection | None = None,
        listener: AsyncWakeListener | None = None,
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
        )
        self._client = client
        expect("renew", renew, bool, "True or False")
        expect("history", history, bool, "True or False")
        self._renews = renew
        self._renewer: asyncio.Task[None] | None = None
        self._ended = False
        """The lease ended, says who renews it."""
        self._own_connection = connection is None
        self._connection = connection if connection is not None else AsyncConnection(client)
        self._own_listener = listener is None
        self._listener = listener

    # -- life --------------------------------------------------------------------------------------

    async def register(self) -> Self:
        """Join the queue with a lease and a new term. Raises LifecycleError if it is joined."""
        call = self._register_call()
        registered = await self._connection.run(call, queue=self.keys.queue, consumer=self.name)
        self.now, self.term, self.state = registered
        self._lost = self._ended = False
        if self._listener is None:
            self._listener = AsyncWakeListener(AsyncConnection(self._client, timeout=None))
        self._listener.add(self.name, self.keys.wake(self.name))
        if self._renews:
            self._renewer = asyncio.create_task(self._renew(self.name))
        return self

    async def rejoin(self) -> None:
        """After the registration was lost: join again, under a new name and with empty hands."""
        await self._leave()
        self.name = consumer_name(self.name.rsplit(":", 2)[0])
        await self.register()

    async def close(self) -> None:
        """Leave the queue: what is held goes back uncounted, in its place (X-21). A second close,
        or one after the lease ended, does nothing."""
        self._lost = False
        try:
            if self.term:
                await self._part()
        finally:
            if self.credit is not None:
                self.credit.leave()
            if self._own_listener and self._listener is not None:
                await self._listener.close()
            if self._own_connection:
                await self._connection.close()

    async def _part(self) -> None:
        term = self.term
        try:
            try:
                await self._unregister(term)
            except ConnectionLost:
                await self._unregister(term)  # over a new connection: it may be said twice
        except RegistrationLost:
            pass  # everything went back already
        finally:
            await self._leave()

    async def _unregister(self, term: str) -> None:
        call = commands.unregister(self.keys, self.name, term)
        while (await self._connection.run(call, queue=self.keys.queue, consumer=self.name)).held:
            pass

    async def _leave(self) -> None:
        self._forget()
        renewer, self._renewer = self._renewer, None
        if renewer is not None:
            await end(renewer)
        if self._listener is not None:
            self._listener.remove(self.keys.wake(self.name))

    async def __aenter__(self) -> Self:
        return self if self.term else await self.register()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # -- protocol ----------------------------------------------------------------------------------

    async def pull(self, *, recall: bool = False) -> list[Delivery]:
        """Acquire what the window allows; as `Consumer.pull`."""
        self._joined()
        unread = self._take_unread()
        if self.mode == "browse":
            return unread + await self._browse()
        if recall:
            return sorted(await self._recall(self._window()), key=in_order)
        return unread + await self._fetch()

    async def _fetch(self) -> list[Delivery]:
        pulled = await self._run(self._pull_call(self._window()))
        jobs = await self._in_turn(pulled)
        await self._idle()
        return jobs

    async def settle(
        self,
        *,
        ack: Iterable[Delivery | str] = (),
        done: Iterable[tuple[Delivery | str, Any]] = (),
        retry: Iterable[Retried] = (),
        reject: Iterable[tuple[Delivery | str, dict[str, Any]]] = (),
        release: Iterable[Delivery | str] = (),
        pull: bool = False,
        batch: bytes = b"",
        rows: int = 0,
    ) -> list[Delivery]:
        """Say what became of jobs; as `Consumer.settle`."""
        self._joined()
        settling = self._settled(ack, done, retry, reject, release, batch, rows)
        assert self._listener is not None
        if pull:
            jobs = await self._in_turn(await self._run(self._settle_call(settling, self._window())))
            await self._idle()
            return self._take_unread() + jobs
        if (narrow := self._narrow_window()) is not None:
            self.state = await self._run(self._interest_call(narrow))
        self._take(await self._run(self._settle_call(settling, None)), settled_only=True)
        self._listener.poke()  # another task may wait for room
        if (again := self._reopen_window()) is not None:
            self.state = await self._run(self._interest_call(again))
        return []

    async def interest(self, jobs: int, bytes: int = 0) -> str:
        """Set the window without pulling; as `Consumer.interest`."""
        self._joined()
        self.state = await self._run(self._interest_call(self._set_window(jobs, bytes)))
        return self.state

    async def grant(self, jobs: int = 0, bytes: int = 0) -> str:
        """Add to the credit, without pulling; as `Consumer.grant`."""
        self._joined()
        self.state = await self._run(self._interest_call(self._grant(jobs, bytes)))
        return self.state

    async def wait(self, timeout: float | None = None) -> list[Wake]:
        """Wait for a wake-up, at most `timeout` seconds; as `Consumer.wait`. Cancelling it loses
        nothing."""
        self._joined()
        assert self._listener is not None
        wakes = await self._listener.wait(self._wait_s(timeout))
        if self._ended:
            self._lost = True
            await self._leave()
            raise ConsumerGone(self.name, queue=self.keys.queue)
        return [wake for wake in wakes if self.hear(wake)]

    # -- the end of credit (Q-54) ------------------------------------------------------------------

    async def stop(self) -> list[Delivery]:
        """Give up the credit; as `Consumer.stop`."""
        self._joined()
        unread = self._take_unread()
        self._no_credit()
        if self.mode == "browse":
            self.state = await self._run(self._interest_call(NO_CREDIT))
            return unread
        jobs = await self._in_turn(await self._run(self._pull_call(NO_CREDIT)), NO_CREDIT)
        if self._listener is not None:
            self._listener.poke()  # another task may wait for what does not come any more
        return unread + jobs

    async def flush(self) -> list[Delivery]:
        """Acquire all that the present credit allows, then give up what is left of it; as
        `Consumer.flush`."""
        return sorted([job async for jobs in self.drain() for job in jobs], key=in_order)

    async def drain(self) -> AsyncIterator[list[Delivery]]:
        """Acquire until nothing is left, then give up the credit; as `Consumer.drain`."""
        while (jobs := await self.pull()) or self.more:
            if jobs:
                yield jobs
        if last := await self.stop():
            yield last

    # -- inside ------------------------------------------------------------------------------------

    async def _renew(self, name: str) -> None:
        pace = RenewalPace(self.lease_ms)
        connection, pause = AsyncConnection(self._client, pace.answer_within), pace.interval
        try:
            while True:
                await asyncio.sleep(pause)
                try:
                    renewed = await connection.run(commands.renew(self.keys, self.lease_ms, [name]))
                except ServerError as error:
                    if not pace.failing:
                        log.warning("cannot renew leases in queue %s: %s", self.keys.queue, error)
                    pause = pace.failed()
                    continue
                pause = pace.answered(renewed)
                log_died(log, self.keys.queue, renewed.died)
                if renewed.gone:
                    log.warning("the lease of consumer %s in %s ended", name, self.keys.queue)
                    self._ended = True
                    if self._listener is not None:
                        self._listener.poke()
                    return
        finally:
            await connection.close()

    async def _in_turn(self, pulled: Pulled, window: Window | None = None) -> list[Delivery]:
        """The jobs of a reply, behind what was handed over before them and not heard of yet."""
        if not self._overtakes(pulled):
            return self._take(pulled)
        # what nobody was given yet is named again, in its turn
        known = self._held.keys() - {job.id for job in self._unread}
        self._take(pulled)
        jobs = await self._recall(self._window() if window is None else window)
        self._asked = pulled.behind  # once: a damaged one is never named
        return in_turn([job for job in jobs if job.id not in known])

    async def _recall(self, window: Window) -> list[Delivery]:
        """All that is in these hands, in the order in which it was taken, and what the window still
        allows."""
        recall = Recall()
        while not recall.read(pulled := await self._run(self._pull_call(window, recall))):
            pass
        jobs = self._take_recalled(pulled, recall)
        await self._idle()
        return jobs

    async def _browse(self) -> list[Delivery]:
        if not self._window().jobs:
            return []
        page = await self._run(self._browse_call())
        if (fits := self._affords(page)) < len(page.jobs):
            page = await self._run(self._browse_call(fits))
        jobs = self._browsed(page)
        if jobs and not self._window().jobs:
            self.state = await self._run(self._interest_call(NO_CREDIT))
        return jobs

    async def _idle(self) -> None:
        if (small := self._idle_window()) is not None:
            self.state = await self._run(self._interest_call(small))

    async def _run(self, call: commands.ScriptCall[Any]) -> Any:
        try:
            return await self._connection.run(call, queue=self.keys.queue, consumer=self.name)
        except RegistrationLost:
            self._lost = True
            await self._leave()
            raise
