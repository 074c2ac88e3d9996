"""The settle calls of one worker's subscription: what ended and is not reported yet, and what
became of it when the reply is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import monotonic
from typing import TypeVar

from rqueue.errors import ConfigError, QueueDamaged, RegistrationLost, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.model.labels import ALL
from rqueue.model.parents import has_dependants
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.commit import Committed
from rqueue.protocol.commands.settle import Pulled, Window
from rqueue.protocol.course import Calls, run_course
from rqueue.protocol.exchange import KNOWN
from rqueue.protocol.forwarding import forwarding, sends_on
from rqueue.protocol.keys import QueueKeys, queue_of
from rqueue.settings import Settings
from rqueue.transport.connection import Connection
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.ended_jobs import AnOutcome, EndedJobs
from rqueue_workers.worker.flight import Flight
from rqueue_workers.worker.follow_ups import Follower, FollowUps, failed_commit
from rqueue_workers.worker.history_rows import pack_rows
from rqueue_workers.worker.outcome import (
    PUT_OFF_MS,
    Ack,
    Done,
    Outcome,
    put_off,
    refuses,
)
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.reports import Reports
from rqueue_workers.worker.step_keeper import StepKeeper

T = TypeVar("T")

_new = tuple.__new__

log = logger("rqueue.worker")

BYTES_WINDOW = 64 * 1024 * 1024
CHUNK = 500
"""Jobs that one settle call names at most."""


class SettleCalls(EndedJobs):
    """Reports what ended. page: counts what ended and is settled."""

    __slots__ = (
        "_bytes_window",
        "_connection",
        "_page",
        "_tally",
        "bodies",
        "follow_ups",
        "labels",
        "owes_forward",
        "reports",
        "steps",
    )

    def __init__(
        self,
        keys: QueueKeys,
        connection: Connection,
        worker: str,
        page: StatusPage,
        bodies: str = "none",
        labels: Sequence[str] = ALL,
        bytes_window: int = BYTES_WINDOW,
        settings: Settings | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        super().__init__(keys, worker)
        settings = settings or Settings()
        self.follow_ups = FollowUps(keys, settings)
        """What jobs enqueue by the step that acks them."""
        self.bodies = bodies
        self.labels = labels
        self.steps = StepKeeper(self, connection, settings.signer)
        """Keeps what jobs that run have done."""
        self.reports = Reports(self, reporter or Reporter(connection))
        """What jobs that run say of themselves."""
        self.owes_forward = False
        """What ended is to be sent on to other queues."""
        self._bytes_window = bytes_window
        self._connection = connection
        self._page = page
        self._tally = page.tally

    def run(self, call: ScriptCall[T]) -> T:
        """Run a call of this consumer, or one that sends its jobs on. Raises the tree of
        `rqueue.errors`."""
        consumer = self.name if call.key == self.keys.meta else ""
        return self._connection.run(call, queue=queue_of(call.key), consumer=consumer)

    # -- in one go ---------------------------------------------------------------------------------

    def settle(self, window: int | None) -> list[bytes]:
        """Report what ended and, unless `window` is None, pull: [id, value, ...] of the new jobs.

        Outcomes that could not be reported, because Redis is gone, are reported next time. Raises
        the server errors and RegistrationLost.
        """
        if self.stops.news or self.follow_ups.jobs or self.reports.open:
            jobs = run_course(self.settling(window), self.run)
        else:  # nearly always
            flight = self._prepare(window)
            try:
                pulled = self._connection.run(flight.call, queue=self.queue, consumer=self.name)
            except RQueueError as error:
                self._untold(flight, error)
                return self.settle(window)
            jobs = self._told(flight, pulled)
            if not flight.whole:
                jobs = run_course(self.settling(window), self.run)
        if self.owes_forward:
            run_course(self.forwarding(), self.run)
        return jobs

    def send(self, window: int) -> None:
        """`settle` without waiting for the reply: `receive` reads it, before any other call on this
        connection. Raises as `settle` does."""
        flight = self._prepare(window)
        if self.reports.open:
            run_course(self._reports_ending(flight), self.run)
        try:
            self._connection.begin(flight.call)
        except ServerError:
            self.restore(flight)
            raise
        self.flight = flight

    def receive(self) -> list[bytes]:
        """What came of `send`: [id, value, ...] of the new jobs. Raises as `settle` does."""
        flight, self.flight = self.flight, None
        if flight is None:
            return []
        try:
            pulled = self._connection.finish(flight.call, queue=self.queue, consumer=self.name)
        except RQueueError as error:
            self._untold(flight, error)
            return self.settle(flight.window)
        jobs = self._told(flight, pulled)
        if self.owes_forward:
            run_course(self.forwarding(), self.run)
        return jobs

    # -- call by call ------------------------------------------------------------------------------

    def settling(self, window: int | None) -> Calls[list[bytes]]:
        """The calls of `settle`, but for what is sent on."""
        if self.stops.news:
            yield from self.stops.telling(self.keys, self.name)
        while True:
            if self.follow_ups.jobs:
                yield from self._commit_followed()
            flight = self._prepare(window)
            jobs = yield from self._telling(flight)
            if jobs is not None and flight.whole:
                return jobs

    def passing_on(self) -> Calls[None]:
        """Give back what others are to have a look at."""
        self.back.extend(_take(self.passing, CHUNK))
        while (yield from self._telling(self._prepare(None))) is None:
            pass

    def forwarding(self) -> Calls[None]:
        """Send on what ended, where that is to be. What cannot be sent goes with a renewal."""
        if self.owes_forward:
            self.owes_forward = False
            try:
                yield from forwarding(self.keys)
            except RQueueError as error:
                log.debug("queue %s: what is in the outbox goes later: %s", self.queue, error)

    def _telling(self, flight: Flight) -> Calls[list[bytes] | None]:
        """Say it: [id, value, ...] of the new jobs; None where it has to be said in another way."""
        self.flight = flight
        if self.reports.open:
            yield from self._reports_ending(flight)
        try:
            pulled = yield flight.call
        except BaseException as error:
            self.flight = None
            self._untold(flight, error)
            return None
        self.flight = None
        return self._told(flight, pulled)

    def _reports_ending(self, flight: Flight) -> Calls[None]:
        """What jobs report comes before their ends."""
        ids = [id_ for id_, _ in flight.jobs]
        try:
            yield from self.reports.ending(ids, [row[0] for row in flight.others])
        except BaseException:
            self.flight = None
            self.restore(flight)
            raise

    def _prepare(self, window: int | None) -> Flight:
        """As much of what ended as one call names; where there is more, it does not pull."""
        self.asked_at = monotonic()
        # nearly always: jobs that succeeded and said nothing
        acks = _take(self.acks, CHUNK) if self.acks else []
        dones = _take(self.dones, CHUNK - len(acks)) if self.dones else []
        others = _take(self.others, CHUNK - len(acks) - len(dones)) if self.others else []
        back = _take(self.back, CHUNK - len(acks) - len(dones) - len(others)) if self.back else []
        whole = True
        if self.acks or self.dones or self.others or self.back:  # what ended just now may wait
            whole = len(acks) + len(dones) + len(others) + len(back) < CHUNK
            if not whole:
                window = None
        if window is not None and window != self.window.jobs:
            self.window = Window(window, self._bytes_window)
        if self.follow_ups.jobs:
            acks, dones = self._unfollowed(self.acks, acks), self._unfollowed(self.dones, dones)
            for row in others:
                self.follow_ups.take(row[0])  # it failed: nothing follows it
        if self.doomed:
            acks, dones, others = self.alive(acks), self.alive(dones), self.alive(others)
        again = reject = others
        if others:
            again = [row for row in others if row.again is not None]
            reject = [row for row in others if row.again is None]
            others = [*again, *reject]
        ended: Sequence[Outcome] = [*acks, *dones, *others] if dones or others else acks
        batch, freed = b"", 0
        if ended:
            batch = pack_rows(
                self.queue, self.worker, self.clock.offset, acks, dones, others, self.bodies,
                self.labels,
            )  # fmt: skip
            freed = sum([len(row[1]) for row in ended])
        if back:
            freed += sum([len(value) for _, value in back])
        if self.steps.longer:
            freed += self.steps.freed([row[0] for row in (*ended, *back)])
        call = commands.settle(
            self.keys,
            self.name,
            self.term,
            None if window is None else self.window,
            ack=[row[0] for row in acks],
            done=[(row.id, row.keep_ms, row.payload) for row in dones] if dones else (),
            retry=[row.again for row in again if row.again is not None] if again else (),
            reject=[(row.id, row.cause) for row in reject] if reject else (),
            release=[id_ for id_, _ in back] if back else (),
            freed=freed,
            batch=batch,
            rows=len(ended),
        )
        self.settled(ended)
        if back:
            self.settled(back)
        # past its own constructor: half the time
        return _new(Flight, (call, window, acks, dones, others, back, whole))

    def _untold(self, flight: Flight, error: BaseException) -> None:
        """A call failed; it may have been done all the same: then these ids are refused next time,
        unheard. Raises the error, unless there is another way to say it."""
        if isinstance(error, ConfigError):
            if not any(map(refuses, flight.others)):
                raise error
            # a queue with policies that refusals do not go with
            log.error("what was refused waits %d s instead: %s", PUT_OFF_MS / 1000, error)
            self.restore(flight._replace(others=list(map(put_off, flight.others))))
            return
        self.restore(flight)
        raise error

    def _told(self, flight: Flight, pulled: Pulled) -> list[bytes]:
        _, window, acks, dones, others, back, _ = flight
        if self.steps.longer:
            for id_, _ in flight.jobs:
                self.steps.longer.pop(id_, None)
        if self.reports.open:
            self.reports.settled([id_ for id_, _ in flight.jobs])
        if self.early:
            for row in acks:
                if answered := self.early.pop(row[0], None):
                    answered(row[0] not in pulled.refused)
        if KNOWN and sends_on(self.keys) and (others or flight.awaited):
            self.owes_forward = True
        if back:
            self.released = True
        if ended := len(acks) + len(dones) + len(others):
            self._tally[0] += ended
        if self.settle_first:
            self.settle_first = self.pending > 0
        jobs = self.took(pulled, asked=window is not None)
        if pulled.refused:
            self.refused(pulled.refused)
        if window is not None and (jobs or self.state == "interested"):
            self.released = False
        return jobs

    def _commit_followed(self) -> Calls[None]:
        """Each job that others follow is settled by a step of its own, which enqueues those: where
        it is refused, that is no other job's loss."""
        ended: list[Ack | Done] = [*self.acks, *self.dones]
        for row in [row for row in ended if row[0] in self.follow_ups]:
            jobs = self.follow_ups.take(row[0])
            if row[:2] not in self.doomed:
                if isinstance(row, Done):
                    self.dones.remove(row)
                else:
                    self.acks.remove(row)
                yield from self._commit(row, jobs)

    def _unfollowed(self, rows: deque[AnOutcome], taken: list[AnOutcome]) -> list[AnOutcome]:
        """Of the rows that were taken, those of jobs that nothing follows; the others, which may
        have ended just now, go back."""
        followed = [row for row in taken if row[0] in self.follow_ups]
        rows.extendleft(reversed(followed))
        return [row for row in taken if row not in followed] if followed else taken

    def _commit(self, row: Ack | Done, jobs: list[Follower]) -> Calls[None]:
        id_, value = row[0], row[1]
        done = [row] if isinstance(row, Done) else []
        acks = [] if isinstance(row, Done) else [row]
        clock = self.clock.offset
        batch = pack_rows(self.queue, self.worker, clock, acks, done, (), self.bodies, self.labels)
        puts, others = self.follow_ups.signed(jobs)
        call = commands.commit(
            self.keys,
            self.name,
            self.term,
            puts,
            others=others,
            ack=[] if done else [id_],
            done=[(one.id, one.keep_ms, one.payload) for one in done],
            freed=len(value) + self.steps.longer.pop(id_, 0),
            batch=batch,
            rows=1,
        )
        self.settled([row])
        self.flight = flight = Flight(call, None, acks, done, [], [], False)
        try:
            committed: Committed = yield call
        except (ServerError, QueueDamaged, RegistrationLost, GeneratorExit):
            self.restore(flight)
            self.follow_ups.restore(id_, jobs)
            raise
        except RQueueError as error:
            self.unsettle([(id_, value)])
            self.others.append(failed_commit(row, error))
            return
        finally:
            self.flight = None
        self._tally[0] += 1
        self.reports.settled([id_])
        if others or has_dependants(value):
            self.owes_forward = True
        self.took(
            Pulled(committed.now, committed.state or self.state, -1, [], b"", []), asked=False
        )
        if committed.stale and not committed.over:  # else a try whose reply was lost has done it
            self.refused([id_])


def _take(rows: deque[T], most: int) -> list[T]:
    count = len(rows)
    if count > most:
        count = most
    popleft = rows.popleft
    if count == 1:
        return [popleft()]
    return [popleft() for _ in range(count)]
