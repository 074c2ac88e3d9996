# Generated from rqueue/client/_async/consumer_steps.py (`make generate`): do not edit.
"""The steps of the consumer protocol: register, wait, pull, settle, interest, close."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rqueue.client._sync.consumer_life import ConsumerLife
from rqueue.errors import (
    ConsumerGone,
    LifecycleError,
    RegistrationLost,
    RQueueError,
)
from rqueue.logs import logger
from rqueue.model.job import Delivery
from rqueue.model.job_order import in_order, in_turn
from rqueue.protocol import commands
from rqueue.protocol.commands.settle import SETTLE_MAX, Pulled, Retried, Window
from rqueue.protocol.credit_window import NO_CREDIT
from rqueue.protocol.forwarding import forward_soon, sends_on
from rqueue.protocol.recall import Recall
from rqueue.protocol.settling import Settling
from rqueue.protocol.wake import Wake

log = logger("rqueue")


class ConsumerSteps(ConsumerLife):
    """The steps, one script call each; see `Consumer`."""

    # -- protocol ----------------------------------------------------------------------------------

    def pull(self, *, recall: bool = False) -> list[Delivery]:
        """Acquire what the window allows, oldest of the highest level first (Q-40).

        recall: also return all that the queue says this consumer holds (after a lost reply, H-18).
        A browser gets the next jobs behind its cursor, and acquires none. Raises RegistrationLost.
        """
        self._state.joined()
        unread = self._take_unread()
        if self.mode == "browse":
            return unread + self._browse()
        if recall:
            recalled = self._recall(self._state.next_window())
            return self._removed(sorted(recalled, key=in_order))
        return self._removed(unread + self._fetch())

    def _fetch(self) -> list[Delivery]:
        pulled = self._run(self._pull_call(self._state.next_window()))
        jobs = self._in_turn(pulled)
        self._idle()
        return jobs

    def settle(
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
        """Settle jobs; with `pull`, acquire the next ones in the same step.

        ack: done. done: (job, result), the result is kept. retry: failed, again later. reject:
        (job, cause), to the dead letters. release: returned unstarted. Jobs that this consumer
        does not hold any more change nothing and are named in `refused` (H-08). batch, rows: packed
        history rows of ack, done, retry, reject, in this order. Raises RegistrationLost and
        NotEncodable.
        """
        self._state.joined()
        settling = self._settled(ack, done, retry, reject, release, batch, rows)
        if pull:
            jobs = self._in_turn(self._tell(settling, self._state.next_window()))
            self._idle()
            return self._removed(self._take_unread() + jobs)
        if (narrow := self._state.narrow_window()) is not None:
            self._state.state = self._run(self._state.interest_call(narrow))
        self._take(self._tell(settling, None), asked=False)
        if (again := self._state.reopened_window()) is not None:
            self._state.state = self._run(self._state.interest_call(again))
        if self._leaving and not self._state.unsettled:
            self.close()
        return []

    def interest(self, jobs: int, bytes: int = 0) -> str:
        """Set the window without pulling; none: not interested (drain, Q-54). Returns the state:
        "notified" means work waits, pull. With a credit manager use `grant`, which adds."""
        self._stays()
        self._state.state = self._run(
            self._state.interest_call(self._state.set_window(jobs, bytes))
        )
        return self._state.state

    def grant(self, jobs: int = 0, bytes: int = 0) -> str:
        """Add to the credit, without pulling; returns the state, as `interest` (Q-50, Q-51)."""
        self._stays()
        self._state.state = self._run(
            self._state.interest_call(self._state.grant_window(jobs, bytes))
        )
        return self._state.state

    def wait(self, timeout: float | None = None) -> list[Wake]:
        """Wait for a wake-up, at most `timeout` seconds; [] when nothing came.

        A job delivered directly comes with it and is held. When `timer_ms` is set the wait ends by
        then: pull. A wait that is cancelled loses nothing. Raises the server errors.
        """
        wakes = self._wait(timeout)
        return [wake for wake in wakes if wake.job is None or self._removed([wake.job])]

    def _wait(self, timeout: float | None) -> list[Wake]:
        self._state.joined()
        assert self._listener is not None
        try:
            wakes = self._listener.wait(self._wait_s(timeout), self._renewer)
        except RQueueError as error:
            self.connection.fails(error)
            raise
        if self._renewer is not None and self._renewer.ended:
            self._lose()
            raise ConsumerGone(self._state.name, queue=self._state.keys.queue)
        if any(wake.kind == "shards" for wake in wakes):
            self._see_to_table()
        return [wake for wake in wakes if self.hear(wake)]

    # -- the end of credit (Q-54) ------------------------------------------------------------------

    def stop(self) -> list[Delivery]:
        """Give up the credit: nothing more is delivered. What is held stays held, and what was
        delivered and not returned yet is returned. `interest` or `grant` begins again."""
        self._state.joined()
        unread = self._take_unread()
        self._state.no_credit()
        if self.mode == "browse":
            self._state.state = self._run(self._state.interest_call(NO_CREDIT))
            return unread
        jobs = self._in_turn(self._run(self._pull_call(NO_CREDIT)), NO_CREDIT)
        return self._removed(unread + jobs)

    def flush(self) -> list[Delivery]:
        """Acquire all that the present credit allows, then give up what is left of it. Returns the
        jobs in the queue's order, with what was delivered and not returned yet; `ended_by` says
        why there are no more (Q-28)."""
        return sorted([job for jobs in self.drain() for job in jobs], key=in_order)

    def drain(self) -> Iterator[list[Delivery]]:
        """Acquire until nothing is left, then give up the credit.

        Yields batches; settle each before the next is asked for, or the window is full and the
        drain ends with it: `ended_by` says which. Jobs that come back later (a retry with a delay)
        are not waited for.
        """
        self.ended_by = ""
        while (jobs := self.pull()) or self.more:
            if jobs:
                yield jobs
        if self.mode == "browse":
            self.ended_by = "empty" if self._view.at_tail else "credit"
        elif self._state.state != "interested":
            self.ended_by = "credit"
        else:
            counts = self._run(commands.counts(self._state.keys, oldest=False))
            self.ended_by = "paused" if counts.meta.get("paused") == "1" else "empty"
        if last := self.stop():
            yield last

    # -- inside ------------------------------------------------------------------------------------

    def _in_turn(self, pulled: Pulled, window: Window | None = None) -> list[Delivery]:
        """The jobs of a reply, behind what was delivered directly before them and not read yet."""
        jobs = self._take(pulled)
        if not self._state.overtakes:
            return jobs
        # what was not returned yet is named again, in its turn
        self._state.disown([job.id.encode() for job in (*jobs, *self._unread)])
        known = set(self._state.unsettled)
        self._state.ask()
        jobs = self._recall(self._state.next_window() if window is None else window)
        return in_turn([job for job in jobs if job.id.encode() not in known])

    def _recall(self, window: Window) -> list[Delivery]:
        """All that this consumer holds, in the order in which it was taken, and what the window
        still allows."""
        recall = Recall()
        while not recall.read(pulled := self._run(self._state.recall_call(window, recall))):
            pass
        jobs = self._take_recalled(pulled, recall)
        self._idle()
        return jobs

    def _browse(self) -> list[Delivery]:
        jobs: list[Delivery] = []
        while not jobs and self._state.next_window().jobs:
            page = self._run(self._browse_call())
            if (fits := self._affords(page)) < len(page.jobs):
                page = self._run(self._browse_call(fits))
            jobs = self._browsed(page)
            if self._view.at_tail:
                if self.auto_close:
                    self.close()
                else:  # no page says that the queue was deleted
                    self._run(self._state.interest_call(self._state.next_window()))
                return []
        if not self._state.next_window().jobs:
            if jobs:
                self._state.state = self._run(self._state.interest_call(NO_CREDIT))
            elif self.auto_close:
                self._close_at_tail()
        return jobs

    def _close_at_tail(self) -> None:
        """Close a browser whose grant is used up if nothing waits behind its cursor."""
        page = self._run(commands.browse(self._state.keys, self._view.cursor, 1))
        if not (page.jobs or page.more):
            self.close()

    def _removed(self, jobs: list[Delivery]) -> list[Delivery]:
        """What may be returned: of a consumer that does not ack, those jobs that the queue has
        ended for it by now (Q-24). Where it does not answer, the others are held, or gone."""
        if self.mode != "no_ack":
            return jobs
        removed: list[Delivery] = []
        for start in range(0, len(jobs), SETTLE_MAX):
            some = jobs[start : start + SETTLE_MAX]
            try:
                self.settle(ack=some)
            except RQueueError:
                if removed:  # the caller alone has these
                    break
                raise
            removed += [job for job in some if job.id not in self.refused]
        return removed

    def _stays(self) -> None:
        """Raises LifecycleError where it is not registered, or was cancelled."""
        self._state.joined()
        if self._leaving:
            raise LifecycleError(f"consumer '{self.name}' was cancelled")

    def _idle(self) -> None:
        if (small := self._state.idle_window()) is not None:
            self._state.state = self._run(self._state.interest_call(small))

    def _tell(self, settling: Settling, window: Window | None) -> Pulled:
        """Settle. Where the call fails it may be said again: what it named is held until then."""
        try:
            pulled: Pulled = self._run(self._settle_call(settling, window))
        except RegistrationLost:
            raise
        except BaseException:
            self._unsettle(settling)
            raise
        if sends_on(self._state.keys):
            forward_soon(self._connection.run, self._state.keys)
        return pulled
