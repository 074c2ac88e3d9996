"""The settle calls of one worker's subscription: what ended and is not reported yet, and what
became of it when the reply is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rqueue.errors import ConfigError, QueueDamaged, RegistrationLost, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.model.labels import ALL
from rqueue.model.parents import has_dependants
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.settle import Pulled, Window
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.forwarding import forward_soon, sends_on
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.text.numbers import many
from rqueue.transport.connection import Connection
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.flight import Flight, Held
from rqueue_workers.worker.follow_ups import Follower, FollowUps, failed_commit
from rqueue_workers.worker.history_rows import pack_rows
from rqueue_workers.worker.outcome import (
    PUT_OFF_MS,
    Ack,
    Done,
    Outcome,
    Unfinished,
    put_off,
    refuses,
)
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.reports import Reports
from rqueue_workers.worker.step_keeper import StepKeeper
from rqueue_workers.worker.stops import Stops

T = TypeVar("T")
AnOutcome = TypeVar("AnOutcome", Ack, Done, Unfinished)

log = logger("rqueue.worker")

BYTES_WINDOW = 64 * 1024 * 1024
CHUNK = 500
"""Jobs that one settle call names at most."""


class SettleCalls(ConsumerState):
    """Reports what ended. Executors append to the deques (atomic); everything else is done under
    the dispatcher's lock. page: counts what ended and is settled.

    acks, dones, others: rows of ended jobs, to be settled: without a result, with one, and failed
    or put off. back: (id, value) of jobs to release unstarted.
    """

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
        super().__init__(keys, worker=worker)
        self.follow_ups = FollowUps(keys, settings or Settings())
        """What jobs enqueue by the step that acks them."""
        self.queue = keys.queue
        self.bodies = bodies
        self.labels = labels
        self.acks: deque[Ack] = deque()
        self.dones: deque[Done] = deque()
        self.others: deque[Unfinished] = deque()
        self.back: deque[Held] = deque()
        self.passing: deque[Held] = deque()
        """Like `back`, but not to be acquired again in the same step: others are to have a look."""
        self.released = False
        """Jobs went back, and nothing was pulled since: they wait before jobs that are delivered
        now."""
        self.settle_first = False
        """What ended last in the main thread is to be settled before the next job begins."""
        self.cancelled: set[bytes] = set()
        """Jobs that were cancelled here after they began: their outcomes will be refused."""
        self.stops = Stops()
        """How far those are whose code is to be stopped."""
        self.steps = StepKeeper(self, connection)
        """Keeps what jobs that run have done."""
        self.reports = Reports(self, reporter or Reporter(connection))
        """What jobs that run say of themselves."""
        self.early: dict[bytes, Callable[[bool], object]] = {}
        """Jobs that are acked before they begin, and what is called with the answer (Q-24)."""
        self.flight: Flight | None = None
        """A settle that was sent and whose reply is not read yet."""
        self.doomed: set[Held] = set()
        """Deliveries that ran when the registration was lost: others have these jobs now, or they
        run here once more."""
        self.run_anywhere: Callable[[ScriptCall[Any]], Any] = connection.run
        """Runs a call to this queue, or to one that its jobs are sent on to."""
        self._bytes_window = bytes_window
        self._connection = connection
        self._page = page

    @property
    def pending(self) -> int:
        """Jobs whose end is to be reported."""
        rows = len(self.acks) + len(self.dones) + len(self.others)
        return rows + len(self.back) + len(self.passing)

    def ended(self, outcome: Outcome) -> None:
        """An attempt is over. From any thread; the hot loop does the same by itself."""
        if isinstance(outcome, Done):
            self.dones.append(outcome)
        elif isinstance(outcome, Unfinished):
            self.others.append(outcome)
        else:
            self.acks.append(outcome)

    @property
    def unreported(self) -> list[Outcome]:
        """The jobs that ended and that Redis has not answered for."""
        rows: list[Outcome] = [*self.acks, *self.dones, *self.others]
        if (flight := self.flight) is not None:
            rows = [*flight.acks, *flight.dones, *flight.others, *rows]
        return rows

    def settle(self, window: int | None) -> list[bytes]:
        """Report what ended and, unless `window` is None, pull: [id, value, ...] of the new jobs.

        Outcomes that could not be reported, because Redis is gone, are reported next time. Raises
        the server errors and RegistrationLost.
        """
        if self.stops.news:
            self.stops.tell(self.keys, self.name, self._connection.run)
        while True:
            if self.follow_ups.jobs:
                self._commit_followed()
            if self.pending - len(self.passing) <= CHUNK:  # what is passed on goes with `pass_on`
                break
            self._told(self._prepare(None))
        return self._told(self._prepare(window))

    def send(self, window: int) -> None:
        """`settle` without waiting for the reply: `receive` reads it, before any other call on this
        connection. Raises as `settle` does."""
        flight = self._prepare(window)
        try:
            self._connection.begin(flight.call)
        except ServerError:
            self._restore(flight)
            raise
        self.flight = flight

    def receive(self) -> list[bytes]:
        """What came of `send`: [id, value, ...] of the new jobs. Raises as `settle` does."""
        flight, self.flight = self.flight, None
        return [] if flight is None else self._told(flight, begun=True)

    def abandon(self) -> None:
        """What `send` sent is not answered: it may have been done all the same."""
        flight, self.flight = self.flight, None
        if flight is not None:
            self._restore(flight)

    def ack_early(self, row: Ack, answered: Callable[[bool], object]) -> None:
        """A job is to be acked before it begins: `answered` is called once, with whether it is; if
        not, it must not begin. From any thread."""
        self.early[row[0]] = answered
        self.acks.append(row)

    def withdraw(self, row: Ack) -> None:
        """An early ack that is not answered is not said again: whether the job is still held is to
        be asked."""
        if self.early.pop(row[0], None) is not None:
            self.acks.remove(row)
            self.disown([row[0]])

    def pass_on(self) -> None:
        """Give back what others are to have a look at. Raises as `settle` does."""
        self.back.extend(_take(self.passing, CHUNK))
        self._told(self._prepare(None))

    def _prepare(self, window: int | None) -> Flight:
        if window is not None and window != self.window.jobs:
            self.window = Window(window, self._bytes_window)
        # nearly always: jobs that succeeded and said nothing
        acks = self._take_ended(self.acks, CHUNK) if self.acks else []
        dones = self._take_ended(self.dones, CHUNK - len(acks)) if self.dones else []
        others = _take(self.others, CHUNK - len(acks) - len(dones)) if self.others else []
        for row in others:
            self.follow_ups.take(row[0])  # it failed: nothing follows it
        back = _take(self.back, CHUNK - len(acks) - len(dones) - len(others)) if self.back else []
        if self.doomed:
            acks, dones, others = self._alive(acks), self._alive(dones), self._alive(others)
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
        flight = Flight(call, window, acks, dones, others, back)
        if self.reports.open:
            self._reports_end(flight)
        return flight

    def _reports_end(self, flight: Flight) -> None:
        """What jobs report comes before their ends. Raises as `settle` does."""
        ids = [id_ for id_, _ in flight.jobs]
        try:
            self.reports.ending(ids, [row[0] for row in flight.others], self._connection.run)
        except (ServerError, QueueDamaged):
            self._restore(flight)
            raise

    def _told(self, flight: Flight, begun: bool = False) -> list[bytes]:
        run = self._connection.finish if begun else self._connection.run
        call, window, acks, dones, others, back = flight
        try:
            pulled = run(call, queue=self.queue, consumer=self.name)
        except (ServerError, QueueDamaged):
            # it may have been done all the same: then these ids are refused next time, unheard
            self._restore(flight)
            raise
        except RegistrationLost:
            self._restore(flight)  # to be counted
            raise
        except ConfigError as error:
            if not any(map(refuses, others)):
                raise
            # a queue with policies that refusals do not go with
            log.error("what was refused waits %d s instead: %s", PUT_OFF_MS / 1000, error)
            self._restore(flight._replace(others=list(map(put_off, others))))
            return self._told(self._prepare(window))
        if self.steps.longer:
            for id_, _ in flight.jobs:
                self.steps.longer.pop(id_, None)
        if self.reports.open:
            self.reports.settled([id_ for id_, _ in flight.jobs])
        if self.early:
            for row in acks:
                if answered := self.early.pop(row[0], None):
                    answered(row[0] not in pulled.refused)
        if sends_on(self.keys) and (others or flight.awaited):
            forward_soon(self.run_anywhere, self.keys)
        if back:
            self.released = True
        if ended := len(acks) + len(dones) + len(others):
            self._page.add_done(ended)
        if self.settle_first:
            self.settle_first = self.pending > 0
        jobs = self.took(pulled, asked=window is not None)
        if pulled.refused:
            self._refused(pulled.refused)
        if window is not None and (jobs or self.state == "interested"):
            self.released = False
        return jobs

    def _commit_followed(self) -> None:
        """Each job that others follow is settled by a step of its own, which enqueues those: where
        it is refused, that is no other job's loss. Raises as `settle` does."""
        ended: list[Ack | Done] = [*self.acks, *self.dones]
        for row in [row for row in ended if row[0] in self.follow_ups]:
            jobs = self.follow_ups.take(row[0])
            if row[:2] not in self.doomed:
                if isinstance(row, Done):
                    self.dones.remove(row)
                else:
                    self.acks.remove(row)
                self._commit(row, jobs)

    def _take_ended(self, rows: deque[AnOutcome], most: int) -> list[AnOutcome]:
        """Rows of jobs that nothing follows; the others, which may have ended just now, stay."""
        taken = _take(rows, most)
        if not self.follow_ups.jobs:
            return taken
        followed = [row for row in taken if row[0] in self.follow_ups]
        rows.extendleft(reversed(followed))
        return [row for row in taken if row not in followed] if followed else taken

    def _commit(self, row: Ack | Done, jobs: list[Follower]) -> None:
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
        try:
            committed = self._connection.run(call, queue=self.queue, consumer=self.name)
        except (ServerError, QueueDamaged, RegistrationLost):
            if isinstance(row, Done):
                self.dones.appendleft(row)
            else:
                self.acks.appendleft(row)
            self.follow_ups.restore(id_, jobs)
            self.unsettle([(id_, value)])
            raise
        except RQueueError as error:
            self.unsettle([(id_, value)])
            self.others.append(failed_commit(row, error))
            return
        self._page.add_done(1)
        self.reports.settled([id_])
        if others or has_dependants(value):
            forward_soon(self.run_anywhere, self.keys)
        self.took(
            Pulled(committed.now, committed.state or self.state, -1, [], b"", []), asked=False
        )
        if committed.stale and not committed.over:  # else a try whose reply was lost has done it
            self._refused([id_])

    def _restore(self, flight: Flight) -> None:
        self.acks.extendleft(reversed(flight.acks))
        self.dones.extendleft(reversed(flight.dones))
        self.others.extendleft(reversed(flight.others))
        self.back.extendleft(reversed(flight.back))
        self.unsettle(flight.jobs)

    def _alive(self, rows: list[AnOutcome]) -> list[AnOutcome]:
        """Without those of jobs that others have now."""
        kept = [row for row in rows if row[:2] not in self.doomed]
        if len(kept) < len(rows):
            self.doomed.difference_update([row[:2] for row in rows])
            warn_late(len(rows) - len(kept))
        return kept

    def _refused(self, refused: Iterable[bytes]) -> None:
        strangers = []
        for id_ in refused:
            if id_ in self.cancelled:
                self.cancelled.discard(id_)
                self.stops.refused(id_)
            else:
                strangers.append(id_)
        if strangers and not self.doubtful:
            log.warning(
                "queue %s: %s dropped, the jobs are no longer held here (%s)",
                self.queue,
                many(len(strangers), "outcome"),
                ", ".join(id_.decode("utf-8", "backslashreplace") for id_ in strangers[:3]),
            )


def warn_late(count: int) -> None:
    """Outcomes are dropped: the registration was lost."""
    log.warning("%s came too late: the jobs are no longer held here", many(count, "outcome"))


def _take(rows: deque[T], most: int) -> list[T]:
    count = len(rows)
    if count > most:
        count = most
    popleft = rows.popleft
    return [popleft() for _ in range(count)]
