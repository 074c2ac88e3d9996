"""The consumer protocol, one step at a time: register, wait, pull, settle, interest, close.

One consumer belongs to one thread, or to the tasks of one event loop. Q-32 to Q-54 describe the
protocol; `docs/protocol.md` draws it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

from rqueue.client._async.consumer_commit import AsyncConsumerCommit
from rqueue.errors import RegistrationLost, ServerError
from rqueue.logs import logger
from rqueue.model.job import Delivery
from rqueue.model.job_order import in_order
from rqueue.protocol.commands.settle import SETTLE_MAX
from rqueue.protocol.consumer_calls import DEFAULT_LEASE_MS, consumer_name
from rqueue.protocol.policies.refusals import ELSEWHERE
from rqueue.protocol.recall import Recovered
from rqueue.protocol.settling import id_of, retried

__all__ = ["DEFAULT_LEASE_MS", "AsyncConsumer", "consumer_name"]

log = logger("rqueue")


class AsyncConsumer(AsyncConsumerCommit):
    """One subscription to one queue. Made by `AsyncQueue.consumer(...)`.

    jobs, bytes: its window, that is what it may hold at once, all in all (bytes 0: no limit; Q-50).
    credit: a manager that computes the window instead (`rqueue.protocol.credit`).
    priority: higher ones are served first while they have credit (Q-45). select: an expression over
    labels; only jobs that match come, all without one (Q-22); a browser passes over the others.
    mode: "acquire"; "no_ack": each job is taken out of the queue before it is returned, so it runs
    at most once (Q-24); "browse" to look without taking. start, auto_close: where a browser begins
    (Q-27), and that it closes at the tail (Q-29). lease_ms: how long it may stay silent. slots:
    jobs it can run at once; a consumer whose lease ends is charged for as many. 0: it takes a job
    and leaves, and a queue that goes with its last consumer does not go with it (Q-25). renew: keep
    the lease from a thread of this process, or from a task of its loop, which a job that blocks the
    loop for longer than the lease stops (a pool's supervisor renews for its workers instead).
    history: write a row for each job that it settles, unless the call brings rows of its own.

    `state` is the list it is in: interested, notified, not_interested, browsers. `timer_ms`: until
    the next due job, where this consumer is the one to pull then, else -1. `refused`: ids of the
    last settle that it did not hold any more. `now`: ms, Redis's clock at the last reply.
    """

    # -- one job after the other -------------------------------------------------------------------

    async def receive(self, timeout: float | None = None) -> Delivery | None:
        """The next job, waited for at most `timeout` seconds (None: for ever); None when none came.

        After a lost connection the call is repeated once, and the queue is asked what this consumer
        holds; only while Redis cannot be reached are the server errors raised, and the next call
        goes on. A consumer whose lease ended joins again, logs it and counts it in `rejoined`: what
        it held was released, and its `ack` raises RegistrationLost. Without credit (after `stop`,
        or a grant that is used up) it returns None at once. Where the window is full of unsettled
        jobs, none can come: in asyncio it waits until another task settles one (one task receives,
        others may settle), in a thread it raises LifecycleError. A receive that is cancelled loses
        nothing, unless the consumer does not ack. A browser with `auto_close` returns None at the
        tail, and is closed then.
        """
        until = None if timeout is None else monotonic() + max(0.0, timeout)
        while await self._another(until):
            if job := await self._removed([self._unread.popleft()]):
                return job[0]
        return None

    async def _another(self, until: float | None) -> bool:
        """Wait until there is a job to return; whether there is."""
        tries = looks = 0
        while not self._unread:
            try:
                if self._lost:
                    await self._come_back()
                self._state.joined()
                step = self._next_step()
                if step == "over":
                    if self.auto_close:
                        await self._close_at_tail()
                    return False
                # sync: if step == "full":
                # sync:     raise self._full()
                left = None if until is None else until - monotonic()
                if step == "full" and left is not None and left <= 0:  # async
                    return False  # async: another task did not settle in time
                if step == "wait" and left is not None and left <= 0:
                    if looks:
                        return False
                    step = "pull"  # nothing was waited for: one look
                looks += 1
                if step == "pull":
                    await self._refill()
                    if self.auto_close and not self._state.term:
                        return False
                else:
                    self._hear(await self._wait(left))
                tries = 0
            except RegistrationLost:
                continue
            except ServerError:
                self._state.doubtful = True
                tries += 1
                if tries > 1:
                    raise
        return True

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        """The next job, again and again (`receive`), until its credit is given up or it is closed.
        Settle each before the next is asked for, as far as the window is not larger."""
        while self._state.term or self._lost:
            job = await self.receive()
            if job is None:
                return
            yield job

    async def _refill(self) -> None:
        given = set(self._state.unsettled)
        try:
            if self.mode == "browse":
                self._state.doubtful = False
                jobs = await self._browse()
            elif self._state.doubtful:
                jobs = sorted(await self._recall(self._state.next_window()), key=in_order)
            else:
                jobs = await self._fetch()
        except BaseException:
            # some may have come that were not returned
            self._state.disown(self._state.unsettled.keys() - given)
            raise
        self._unread.extend(job for job in jobs if job.id.encode() not in given)

    async def _come_back(self) -> None:
        before = self._state.name
        await self.rejoin()
        self.rejoined += 1
        log.warning(
            "consumer %s is no longer registered in queue %s: %s; it joined again as %s",
            before,
            self._state.keys.queue,
            "Redis lost its data" if self._data_lost else "its lease ended, or Redis lost its data",
            self._state.name,
        )  # fmt: skip

    # -- one job at a time -------------------------------------------------------------------------

    async def ack(self, job: Delivery | str, result: Any = None) -> bool:
        """Done. False if this consumer did not hold it any more: nothing changed."""
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
        """Failed, again in `delay` seconds; counted unless `charge` is False. place: "old" (the
        default without a delay), "head" (the default with one), "tail" (X-05)."""
        await self.settle(retry=[retried(job, delay, error, place, charge)])
        return not self.refused

    async def release(self, job: Delivery | str) -> bool:
        """Release it unstarted: its old position, not counted (Q-03)."""
        await self.settle(release=[job])
        return not self.refused

    async def refuse(self, job: Delivery | str) -> bool:
        """Release it, and do not get it again while this consumer is registered: others take it, in
        its place, uncounted. Where there are none it waits for one (Q-08)."""
        await self.settle(retry=[retried(job, 0, None, ELSEWHERE, False)])
        return not self.refused

    async def reject(self, job: Delivery | str, reason: str, kind: str = "rejected") -> bool:
        """Failed for good, to the dead letters."""
        await self.settle(reject=[(job, self._cause(reason, kind))])
        return not self.refused

    async def ack_multiple(self, up_to: Delivery | str | None = None) -> int:
        """Done: all that this consumer was given, in the order of delivery, up to this job and with
        it; None: all (Q-55). Returns how many. A job that it does not hold acks no other: 0, and
        `refused` names it."""
        self._state.joined()
        if self._state.doubtful:
            await self._refill()
        given = self._given
        if up_to is not None:
            last = id_of(up_to)
            if last not in given:
                self._state.stale = [last.encode()]
                return 0
            given = given[: given.index(last) + 1]
        count, refused = 0, []
        for start in range(0, len(given), SETTLE_MAX):
            some = given[start : start + SETTLE_MAX]
            await self.settle(ack=some)
            refused += self._state.stale
            count += len(some) - len(self._state.stale)
        self._state.stale = refused
        return count

    # -- again, and the end ------------------------------------------------------------------------

    async def recover(self, *, requeue: bool = False) -> int:
        """All that this consumer was given and has not settled comes again, in the order of
        delivery, marked as redelivered (Q-57). Returns how many.

        To this consumer, before anything else: it goes on holding them, and nothing is counted.
        requeue: to any consumer: they are released.
        """
        self._state.joined()
        given = self._given
        if requeue:
            for start in range(0, len(given), SETTLE_MAX):
                await self.settle(release=given[start : start + SETTLE_MAX])
            return len(given)
        self._state.doubtful = True
        jobs = await self._recall(self._state.next_window())
        known = set(given)
        again = [Recovered(job.id, job.value) for job in jobs if job.id in known]
        self._unread.extend(again)
        self._unread.extend(job for job in jobs if job.id not in known)
        return len(again)

    async def cancel(self, *, release: bool = True) -> list[Delivery]:
        """End the subscription (Q-58). What is held is released, as `close` does; or, with
        release=False, it stays held until it is settled: nothing more is delivered, and with the
        last settle the consumer leaves. Returns the jobs that had been delivered and not returned
        yet, to be settled like the others."""
        self._state.joined()
        if release:
            await self.close()
            return []
        jobs = await self.stop()
        self._leaving = True
        if not self._state.unsettled:
            await self.close()
        return jobs
