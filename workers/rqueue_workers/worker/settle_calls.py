"""The settle calls of one worker's subscription: what ended and is not reported yet, and what
became of it when the reply is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from orjson import dumps

from rqueue.errors import QueueDamaged, RegistrationLost, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.model.job import parse_value
from rqueue.model.labels import ALL
from rqueue.protocol import commands
from rqueue.protocol.commands.settle import Pulled, Retried, Window
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.forwarding import forward_soon, sends_on
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.text.numbers import many
from rqueue.transport.connection import Connection
from rqueue_workers.worker.follow_ups import Follower, FollowUps
from rqueue_workers.worker.history_rows import Row, pack_rows

T = TypeVar("T")

Held = tuple[bytes, bytes]
"""id, value."""

log = logger("rqueue.worker")

BYTES_WINDOW = 64 * 1024 * 1024
CHUNK = 500
"""Jobs that one settle call names at most."""


class Flight(NamedTuple):
    """A settle call and what it tells, until its reply is there."""

    call: commands.ScriptCall[Pulled]
    window: int | None
    acks: list[Row]
    dones: list[Row]
    others: list[Row]
    back: list[Held]

    @property
    def jobs(self) -> Iterator[Held]:
        """What it says something of: (id, value)."""
        for row in chain(self.acks, self.dones, self.others):
            yield row[0], row[1]
        yield from self.back


class SettleCalls(ConsumerState):
    """Reports what ended. Executors append to the deques (atomic); everything else is done under
    the dispatcher's lock. ended: called with how many jobs ended, once that is settled.

    acks, dones, others: rows of ended jobs, to be settled: without a result, with one, and failed
    or put off. back: (id, value) of jobs to release unstarted.
    """

    def __init__(
        self,
        keys: QueueKeys,
        connection: Connection,
        worker: str,
        ended: Callable[[int], None],
        bodies: str = "none",
        labels: Sequence[str] = ALL,
        bytes_window: int = BYTES_WINDOW,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(keys, worker=worker)
        self.follow_ups = FollowUps(keys, settings or Settings())
        """What jobs enqueue by the step that acks them."""
        self.queue = keys.queue
        self.bodies = bodies
        self.labels = labels
        self.acks: deque[Row] = deque()
        self.dones: deque[Row] = deque()
        self.others: deque[Row] = deque()
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
        self.early: dict[bytes, Callable[[bool], object]] = {}
        """Jobs that are acked before they begin, and what is called with the answer (Q-24)."""
        self.flight: Flight | None = None
        """A settle that was sent and whose reply is not read yet."""
        self.doomed: set[bytes] = set()
        """Jobs that ran when the registration was lost: others have them now."""
        self._bytes_window = bytes_window
        self._connection = connection
        self._ended = ended

    @property
    def pending(self) -> int:
        """Jobs whose end is to be reported."""
        rows = len(self.acks) + len(self.dones) + len(self.others)
        return rows + len(self.back) + len(self.passing)

    @property
    def untold(self) -> list[Row]:
        """The rows of jobs that ended and that Redis has not answered for."""
        rows = [*self.acks, *self.dones, *self.others]
        flight = self.flight
        return rows if flight is None else [*flight.acks, *flight.dones, *flight.others, *rows]

    def settle(self, window: int | None) -> list[bytes]:
        """Report what ended and, unless `window` is None, pull: [id, value, ...] of the new jobs.

        Outcomes that could not be reported, because Redis is gone, are reported next time. Raises
        the server errors and RegistrationLost.
        """
        while True:
            if self.follow_ups:
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

    def ack_early(self, row: Row, answered: Callable[[bool], object]) -> None:
        """A job is to be acked before it begins: `answered` is called once, with whether it is; if
        not, it must not begin. From any thread."""
        self.early[row[0]] = answered
        self.acks.append(row)

    def withdraw(self, row: Row) -> None:
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
        if window is not None:
            self.window = Window(window, self._bytes_window)
        if self.dones or self.others or self.back or self.doomed:
            return self._prepare_all(window)
        # nearly always: jobs that succeeded and said nothing
        acks = self._take_ended(self.acks, CHUNK)
        batch, freed = b"", 0
        if acks:
            batch = pack_rows(
                self.queue, self.worker, self.clock.offset, acks, (), (), self.bodies, self.labels
            )
            freed = sum([len(row[1]) for row in acks])
        ids = [row[0] for row in acks]
        self.settled(ids)
        call = commands.settle(
            self.keys,
            self.name,
            self.term,
            None if window is None else self.window,
            ack=ids,
            freed=freed,
            batch=batch,
            rows=len(acks),
        )
        return Flight(call, window, acks, [], [], [])

    def _prepare_all(self, window: int | None) -> Flight:
        acks = self._take_ended(self.acks, CHUNK) if self.acks else []
        dones = self._take_ended(self.dones, CHUNK - len(acks)) if self.dones else []
        others = _take(self.others, CHUNK - len(acks) - len(dones)) if self.others else []
        for row in others if self.follow_ups else ():
            self.follow_ups.take(row[0])  # it failed: nothing follows it
        room = CHUNK - len(acks) - len(dones) - len(others)
        back = _take(self.back, room) if self.back else []
        if self.doomed:
            acks, dones, others = self._without_doomed(acks, dones, others)
        again: list[Row] = []
        reject: list[Row] = []
        if others:
            again = [row for row in others if row[7] != "reject"]
            reject = [row for row in others if row[7] == "reject"]
            others = [*again, *reject]
        ended = len(acks) + len(dones) + len(others)
        batch = b""
        freed = 0
        if ended:
            batch = pack_rows(
                self.queue, self.worker, self.clock.offset, acks, dones, others, self.bodies,
                self.labels,
            )  # fmt: skip
            for rows in (acks, dones, others):
                if rows:
                    freed += sum([len(row[1]) for row in rows])
        if back:
            freed += sum([len(value) for _, value in back])
        call = commands.settle(
            self.keys,
            self.name,
            self.term,
            None if window is None else self.window,
            ack=[row[0] for row in acks],
            done=[(row[0], row[7], row[8]) for row in dones] if dones else (),
            retry=[row[9] for row in again] if again else (),
            reject=[(row[0], row[9]) for row in reject] if reject else (),
            release=[id_ for id_, _ in back] if back else (),
            freed=freed,
            batch=batch,
            rows=ended,
        )
        self.settled([job[0] for job in chain(acks, dones, others, back)])
        return Flight(call, window, acks, dones, others, back)

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
        if self.early:
            for row in acks:
                if answered := self.early.pop(row[0], None):
                    answered(row[0] not in pulled.refused)
        if others and sends_on(self.keys):
            forward_soon(self._connection.run, self.keys)
        if dones or others or back:
            acks = [*acks, *dones, *others]
            self.released = self.released or bool(back)
        if acks:
            self._ended(len(acks))
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
        for rows in (self.acks, self.dones):
            for row in [row for row in list(rows) if row[0] in self.follow_ups]:
                jobs = self.follow_ups.take(row[0])
                if row[0] not in self.doomed:
                    rows.remove(row)
                    self._commit(row, rows, jobs)

    def _take_ended(self, rows: deque[Row], most: int) -> list[Row]:
        """Rows of jobs that nothing follows; the others, which may have ended just now, stay."""
        taken = _take(rows, most)
        if not self.follow_ups:
            return taken
        followed = [row for row in taken if row[0] in self.follow_ups]
        rows.extendleft(reversed(followed))
        return [row for row in taken if row not in followed] if followed else taken

    def _commit(self, row: Row, rows: deque[Row], jobs: list[Follower]) -> None:
        id_, value = row[0], row[1]
        done = rows is self.dones
        acks, dones = ([], [row]) if done else ([row], [])
        clock = self.clock.offset
        batch = pack_rows(self.queue, self.worker, clock, acks, dones, (), self.bodies, self.labels)
        puts, others = self.follow_ups.signed(jobs)
        call = commands.commit(
            self.keys,
            self.name,
            self.term,
            puts,
            others=others,
            ack=() if done else [id_],
            done=[(id_, row[7], row[8])] if done else (),
            freed=len(value),
            batch=batch,
            rows=1,
        )
        self.settled([id_])
        try:
            committed = self._connection.run(call, queue=self.queue, consumer=self.name)
        except (ServerError, QueueDamaged, RegistrationLost):
            rows.appendleft(row)
            self.follow_ups.restore(id_, jobs)
            self.unsettle([(id_, value)])
            raise
        except RQueueError as error:
            self.unsettle([(id_, value)])
            self.others.append(failed_commit(row, error))
            return
        self._ended(1)
        if others:
            forward_soon(self._connection.run, self.keys)
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

    def _without_doomed(self, *groups: list[Row]) -> list[list[Row]]:
        kept: list[list[Row]] = []
        late = 0
        for rows in groups:
            kept.append([])
            for row in rows:
                if row[0] in self.doomed:
                    self.doomed.discard(row[0])
                    late += 1
                else:
                    kept[-1].append(row)
        if late:
            warn_late(late)
        return kept

    def _refused(self, refused: Iterable[bytes]) -> None:
        strangers = []
        for id_ in refused:
            if id_ in self.cancelled:
                self.cancelled.discard(id_)
            else:
                strangers.append(id_)
        if strangers and not self.doubtful:
            log.warning(
                "queue %s: %s dropped, the jobs are no longer held here (%s)",
                self.queue,
                many(len(strangers), "outcome"),
                ", ".join(id_.decode("utf-8", "backslashreplace") for id_ in strangers[:3]),
            )


def failed_commit(row: Row, error: RQueueError) -> Row:
    """The row of a job that is done, where what follows it is not taken: it is tried again."""
    log.error("job %s is not done, since what follows it is refused: %s", row[0], error)
    cause = {"kind": "exception", "type": type(error).__name__, "message": str(error)}
    retried = Retried(row[0], 1000, "head", True, dumps(cause), parse_value(row[1])[0].deliveries)
    return (*row[:7], "retry", type(error).__name__, retried)


def warn_late(count: int) -> None:
    """Outcomes are dropped: the registration was lost."""
    log.warning("%s came too late: the jobs are no longer held here", many(count, "outcome"))


def _take(rows: deque[T], most: int) -> list[T]:
    count = len(rows)
    if count > most:
        count = most
    popleft = rows.popleft
    return [popleft() for _ in range(count)]
