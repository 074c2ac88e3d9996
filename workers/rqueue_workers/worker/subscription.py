"""One worker's subscription to one queue: the consumer that it is, the jobs that wait in it, their
outcomes, and the settle call that reports them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple, TypeVar

from rqueue.errors import QueueDamaged, RegistrationLost, ServerError
from rqueue.logs import logger
from rqueue.model.job import parse_value
from rqueue.model.labels import ALL
from rqueue.protocol import commands
from rqueue.protocol.commands.settle import Pulled, Retried, Window
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.error_mapping import damaged
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.recall import Recall
from rqueue.text.numbers import many
from rqueue.transport.connection import Connection
from rqueue_workers.worker.damage import Damage
from rqueue_workers.worker.history_rows import Row, pack_rows
from rqueue_workers.worker.prefetch import PrefetchWindow

T = TypeVar("T")

Unstarted = tuple[bytes, bytes, int]
"""id, value, when it was acquired (ms, Redis's clock)."""

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


class Subscription(ConsumerState):
    """One queue's consumer. Executors append to its deques (atomic) and take from `todo`;
    everything else is done under the dispatcher's lock. ended: called with how many jobs ended,
    once that is settled.

    todo: jobs not begun. acks, dones, others: rows of ended jobs, to be settled: without a result,
    with one, and failed or put off. back: (id, value) of jobs to release unstarted.
    """

    def __init__(
        self,
        index: int,
        keys: QueueKeys,
        connection: Connection,
        worker: str,
        ended: Callable[[int], None],
        prefetch: int = 0,
        bodies: str = "none",
        labels: Sequence[str] = ALL,
        bytes_window: int = BYTES_WINDOW,
    ) -> None:
        super().__init__(keys, worker=worker)
        self.index = index
        self.queue = keys.queue
        self.bodies = bodies
        self.labels = labels
        self.ms = self.clock.ms
        self.todo: deque[Unstarted] = deque()
        self.acks: deque[Row] = deque()
        self.dones: deque[Row] = deque()
        self.others: deque[Row] = deque()
        self.back: deque[Held] = deque()
        self.prefetch = PrefetchWindow(1, prefetch)
        """Of the main thread's executor."""
        self.held_up = False
        """A reply is being read, and may have to stand behind what is heard now."""
        self.released = False
        """Jobs went back, and nothing was pulled since: they wait before jobs that are delivered
        now."""
        self.settle_first = False
        """What ended last in the main thread is to be settled before the next job begins."""
        self.passing: deque[Held] = deque()
        """Like `back`, but not to be acquired again in the same step: others are to have a look."""
        self.executors: set[int] = set()
        """Of the jobs that came so far: what to expect of the next ones."""
        self.hold_until = 0.0
        """While an executor is blocked, pull nothing before this time."""
        self.hold_s = 0.0
        self.most = 10
        """Attempts that the queue allows a job that says nothing else; 0 = any number."""
        self.damage = Damage()
        """Of the queue: while something has overwritten a key of it, it is left alone."""
        self.cancelled: set[bytes] = set()
        """Jobs that were cancelled here after they began: their outcomes will be refused."""
        self.flight: Flight | None = None
        """A settle that was sent and whose reply is not read yet."""
        self.doomed: set[bytes] = set()
        """Jobs that ran when the registration was lost: others have them now."""
        self._bytes_window = bytes_window
        self._connection = connection
        self._ended = ended

    # -- life --------------------------------------------------------------------------------------

    def register(
        self,
        name: str,
        *,
        priority: int,
        lease_ms: int,
        slots: int,
        jobs: int,
        limits: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        """Join the queue under a name nobody had. Raises the server errors."""
        self.name = name
        call = self.register_call(
            Window(jobs, self._bytes_window),
            priority=priority,
            lease_ms=lease_ms,
            slots=slots,
            limits=limits,
        )
        if not self.registered(self._connection.run(call, queue=self.queue, consumer=name)):
            log.error(
                "queue %s: Redis has lost its data, with the jobs that waited or were held then",
                self.queue,
            )

    def unregister(self) -> None:
        """Leave the queue; what is held goes back uncounted. Raises the server errors."""
        if not self.term:
            return
        call = self.unregister_call()
        try:
            while self._connection.run(call, queue=self.queue, consumer=self.name).held:
                pass
        except RegistrationLost:
            log.debug("the lease of %s had ended before it left", self.name)
        self.forget()

    def forget(self) -> None:
        """The registration is over: it holds nothing any more."""
        super().forget()
        self.released = self.held_up = False

    def give_up(self) -> int:
        """The registration is lost: drop what is unstarted, and results nobody would take.
        Returns how many results."""
        stale = len(self.acks) + len(self.dones) + len(self.others)
        for rows in (
            self.acks,
            self.dones,
            self.others,
            self.back,
            self.passing,
            self.todo,
        ):
            rows.clear()
        self.forget()
        self.cancelled.clear()
        self.flight = None
        self.settle_first = False
        return stale

    def check_wake(self) -> None:
        """Raises QueueDamaged where the list of its wake-ups is of another type."""
        name = self.keys.wake(self.name)[len(self.keys.base) :]
        wrong = self._connection.run(commands.check_types(self.keys, [name]), queue=self.queue)
        if wrong:
            raise damaged(self.queue, self.keys.base, wrong)

    # -- settle and pull ---------------------------------------------------------------------------

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
        while self.pending - len(self.passing) > CHUNK:  # what is passed on goes with `pass_on`
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

    def pass_on(self) -> None:
        """Give back what others are to have a look at. Raises as `settle` does."""
        self.back.extend(_take(self.passing, CHUNK))
        self._told(self._prepare(None))

    def unfit(self, id: bytes, value: bytes, row: Row | None) -> None:
        """A job cannot be run here: its row, or None to pass it on."""
        if row is None:
            self.passing.append((id, value))
        else:
            self.others.append(row)

    def put_off(self, id: bytes, value: bytes, acquired: int, now: float, seconds: float) -> None:
        """A job that has not begun is to wait aside for so long, and then in its place."""
        deliveries = parse_value(value)[0].deliveries
        later = Retried(id, round(seconds * 1000), "aside", False, b"", deliveries)
        head = value.partition(b";")[0]
        self.others.append((id, value, head, "", acquired, now, now, "snooze", "", later))

    def _prepare(self, window: int | None) -> Flight:
        if self.dones or self.others or self.back or self.doomed:
            return self._prepare_all(window)
        # nearly always: jobs that succeeded and said nothing
        acks = _take(self.acks, CHUNK)
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
            self._allow(window),
            ack=ids,
            freed=freed,
            batch=batch,
            rows=len(acks),
        )
        return Flight(call, window, acks, [], [], [])

    def _prepare_all(self, window: int | None) -> Flight:
        acks = _take(self.acks, CHUNK)
        dones = _take(self.dones, CHUNK - len(acks))
        others = _take(self.others, CHUNK - len(acks) - len(dones))
        back = _take(self.back, CHUNK - len(acks) - len(dones) - len(others))
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
            self._allow(window),
            ack=[row[0] for row in acks],
            done=[(row[0], row[7], row[8]) for row in dones] if dones else (),
            retry=[row[9] for row in again] if again else (),
            reject=[(row[0], row[9]) for row in reject] if reject else (),
            release=[id_ for id_, _ in back] if back else (),
            freed=freed,
            batch=batch,
            rows=ended,
        )
        flight = Flight(call, window, acks, dones, others, back)
        self.settled([id_ for id_, _ in flight.jobs])
        return flight

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
        if dones or others or back:
            acks = [*acks, *dones, *others]
            self.released = self.released or bool(back)
        if acks:
            self._ended(len(acks))
        if self.settle_first:
            self.settle_first = self.pending > 0
        return self._read(pulled, window)

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

    @property
    def held(self) -> int:
        """Jobs that it holds."""
        return len(self.unsettled)

    def _allow(self, jobs: int | None) -> Window | None:
        if jobs is None:
            return None
        self.window = window = Window(jobs, self._bytes_window)
        return window

    def _read(self, pulled: Pulled, window: int | None) -> list[bytes]:
        jobs = self.took(pulled, asked=window is not None)
        if pulled.refused:
            self._refused(pulled.refused)
        if window is not None and (jobs or self.state == "interested"):
            self.released = False
        return jobs

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

    def recall(self, window: int) -> list[bytes]:
        """Pull, and ask what is held: [id, value, ...] of both, in the order of taking (H-18)."""
        recall, asked = Recall(), Window(window, self._bytes_window)
        while True:
            call = self.recall_call(asked, recall)
            pulled = self._connection.run(call, queue=self.queue, consumer=self.name)
            if recall.read(pulled):
                break
        jobs = self.recalled(pulled, recall)
        if jobs or self.state == "interested":
            self.released = False
        return jobs

    def hold(self, now: float) -> None:
        """Jobs went back because nothing here was free for them. Other executors may have room for
        what comes behind, but the same jobs would come first: look again later, and less and
        less."""
        if now - self.hold_until > 2.0:
            self.hold_s = 0.0
        self.hold_s = min(2.0, max(0.02, 2 * self.hold_s))
        self.hold_until = now + self.hold_s

    def add(self, jobs: Sequence[bytes], acquired: int) -> None:
        """Put jobs, [id, value, ...], into `todo`. acquired: ms, Redis's clock."""
        if len(jobs) == 2:
            self.todo.append((jobs[0], jobs[1], acquired))
            return
        flat = iter(jobs)
        self.todo.extend(zip(flat, flat, repeat(acquired), strict=False))

    def release_unstarted(self) -> int:
        """Unstarted jobs are to go back; returns how many. The executor may take some meanwhile."""
        count = 0
        todo = self.todo
        while todo:
            try:
                id_, value, _ = todo.pop()
            except IndexError:
                break
            self.back.append((id_, value))
            count += 1
        return count


def warn_late(count: int) -> None:
    """Outcomes are dropped: the registration was lost."""
    log.warning("%s came too late: the jobs are no longer held here", many(count, "outcome"))


def _take(rows: deque[T], most: int) -> list[T]:
    count = len(rows)
    if count > most:
        count = most
    popleft = rows.popleft
    return [popleft() for _ in range(count)]
