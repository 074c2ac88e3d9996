"""The consumer protocol for asyncio, one step at a time; see `rqueue.client._sync.consumer`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

from rqueue.client._async.consumer_steps import AsyncConsumerSteps
from rqueue.errors import RegistrationLost, ServerError
from rqueue.logs import logger
from rqueue.model.job import Delivery
from rqueue.model.job_order import in_order
from rqueue.protocol.consumer_state import DEFAULT_LEASE_MS, consumer_name
from rqueue.protocol.settling import retried

__all__ = ["DEFAULT_LEASE_MS", "AsyncConsumer", "consumer_name"]

log = logger("rqueue")


class AsyncConsumer(AsyncConsumerSteps):
    """One subscription to one queue. Made by `AsyncQueue.consumer(...)`; all of its options and
    attributes are those of `rqueue.client._sync.consumer.Consumer`.

    renew: keep the lease from a task of this loop. A job that blocks the loop for longer than the
    lease stops that too: the lease ends, and the settle is refused.
    """

    # -- one job after the other -------------------------------------------------------------------

    async def receive(self, timeout: float | None = None) -> Delivery | None:
        """The next job, waited for at most `timeout` seconds; as `Consumer.receive`, but where the
        window is full of unsettled jobs it waits until another task settles one. One task receives;
        others may settle. Cancelling it loses nothing."""
        until = None if timeout is None else monotonic() + max(0.0, timeout)
        tries = looks = 0
        while not self._unread:
            try:
                if self._lost:
                    await self._come_back()
                self._joined()
                step = self._next_step()
                if step == "over":
                    return None
                left = None if until is None else until - monotonic()
                if step == "full" and left is not None and left <= 0:
                    return None
                if step == "wait" and left is not None and left <= 0:
                    if looks:
                        return None
                    step = "pull"  # nothing was waited for: one look
                looks += 1
                if step == "pull":
                    await self._refill()
                else:
                    self._hear(await self.wait(left))
                tries = 0
            except RegistrationLost:
                continue
            except ServerError:
                self._doubtful = True
                tries += 1
                if tries > 1:
                    raise
        return self._unread.popleft()

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        """The next job, again and again, until its credit is given up or it is closed."""
        while self.term or self._lost:
            job = await self.receive()
            if job is None:
                return
            yield job

    async def _refill(self) -> None:
        given = set(self._held)
        try:
            if self.mode == "browse":
                self._doubtful = False
                jobs = await self._browse()
            elif self._doubtful:
                jobs = sorted(await self._recall(self._window()), key=in_order)
            else:
                jobs = await self._fetch()
        except BaseException:
            # some may have come that nobody was given
            for id_ in self._held.keys() - given:
                self._drop(id_)
            self._doubtful = True
            raise
        self._unread.extend(job for job in jobs if job.id not in given)

    async def _come_back(self) -> None:
        before = self.name
        await self.rejoin()
        self.rejoined += 1
        log.warning(
            "the lease of consumer %s in queue %s ended, what it held was given back; it joined"
            " again as %s", before, self.keys.queue, self.name,
        )  # fmt: skip

    # -- one job at a time -------------------------------------------------------------------------

    async def ack(self, job: Delivery | str, result: Any = None) -> bool:
        """Done. False if it was not in these hands any more: nothing changed."""
        await self.settle(done=[(job, result)])
        return not self.refused

    async def retry(
        self,
        job: Delivery | str,
        *,
        delay: float = 0,
        error: dict[str, Any] | None = None,
        place: str = "",
        charge: bool = True,
    ) -> bool:
        """Failed, again in `delay` seconds; as `Consumer.retry`."""
        await self.settle(retry=[retried(job, delay, error, place, charge)])
        return not self.refused

    async def release(self, job: Delivery | str) -> bool:
        """Give it back unstarted: its old position, not counted (Q-03)."""
        await self.settle(release=[job])
        return not self.refused

    async def reject(self, job: Delivery | str, reason: str, kind: str = "rejected") -> bool:
        """Failed for good, to the dead letters."""
        await self.settle(reject=[(job, self._cause(reason, kind))])
        return not self.refused
