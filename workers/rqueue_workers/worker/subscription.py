"""One worker's subscription to one queue: the consumer that it is, and the jobs that wait in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from math import inf
from time import monotonic

from rqueue.errors import ConsumerRefused, RegistrationLost
from rqueue.logs import logger
from rqueue.model.job import has_expired, parse_value
from rqueue.model.labels import ALL
from rqueue.model.selector import selector
from rqueue.model.signing import Signer
from rqueue.protocol import commands
from rqueue.protocol.commands.settle import Retried, Window
from rqueue.protocol.course import Calls, run_course
from rqueue.protocol.error_mapping import damaged
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.recall import Recall
from rqueue.settings import Settings
from rqueue.transport.connection import Connection
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.damage import Damage
from rqueue_workers.worker.declaring import Declaration, declaring
from rqueue_workers.worker.outcome import Ack, Unfinished
from rqueue_workers.worker.prefetch import PrefetchWindow
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.route import Route
from rqueue_workers.worker.settle_calls import BYTES_WINDOW, SettleCalls
from rqueue_workers.worker.task_plans import THREAD

Unstarted = tuple[bytes, bytes, int]
"""id, value, when it was acquired (ms, Redis's clock)."""

UNKNOWN = frozenset({THREAD})
"""The executors beside the main thread that jobs may be for where nothing is known of them."""

LACKED = 100
"""Tasks that are unknown here and remembered; what is parked for others waits until it is due."""

UNPARK_S = 1.0
"""Seconds that a worker which has left takes at most to put back what it parked."""

log = logger("rqueue.worker")


class Subscription(SettleCalls):
    """One queue's consumer. Executors take from `todo`, the jobs not begun (atomic); everything
    else is done under the dispatcher's lock."""

    __slots__ = (
        "acked",
        "behind_main",
        "damage",
        "diverted",
        "doubt",
        "executors",
        "held_up",
        "hold_s",
        "hold_until",
        "index",
        "lacked",
        "most",
        "ms",
        "named_at",
        "prefetch",
        "route",
        "todo",
        "trust_s",
    )

    def __init__(
        self,
        index: int,
        keys: QueueKeys,
        connection: Connection,
        worker: str,
        page: StatusPage,
        prefetch: int = 0,
        bodies: str = "none",
        labels: Sequence[str] = ALL,
        bytes_window: int = BYTES_WINDOW,
        settings: Settings | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        super().__init__(
            keys, connection, worker, page, bodies, labels, bytes_window, settings, reporter
        )
        self.index = index
        self.ms = self.clock.ms
        self.todo: deque[Unstarted] = deque()
        self.prefetch = PrefetchWindow(1, prefetch)
        """Of the main thread's executor."""
        self.acked: set[bytes] = set()
        """Jobs in `todo` that were acked before they begin: they go back no more."""
        self.held_up = False
        """A reply is being read, and may have to stand behind what is heard now."""
        self.executors: set[int] = set()
        """Of the jobs that came so far: what to expect of the next ones."""
        self.diverted = 0
        """Jobs that were given to executors."""
        self.hold_until = 0.0
        """While an executor is blocked, pull nothing before this time."""
        self.behind_main = False
        """True if jobs that waited for the main thread went back at the last `hold`."""
        self.hold_s = 0.0
        self.named_at = 0.0
        """When it was asked last what is held, by monotonic time: what is here was named then."""
        self.trust_s = 1e9
        """Seconds for which a job that Redis gave or named is taken to be held here still: a third
        of the lease."""
        self.doubt = 0
        """The supervisor's count of doubts that was answered last: see `StatusPage`."""
        self.most = 10
        """Attempts that the queue allows a job that says nothing else; 0 = any number."""
        self.lacked: set[str] = set()
        """Tasks whose jobs were parked here, since nobody here knows them."""
        self.damage = Damage()
        """Of the queue: while something has overwritten a key of it, it is left alone."""
        self.route: Route
        """The way to its queue: it may be that of others too. Set by who makes both."""

    @property
    def away(self) -> bool:
        """Whether the queue cannot be used: it is damaged, or Redis is gone."""
        return self.route.away or bool(self.damage.since)

    def barred(self, sure: float) -> bool:
        """Whether nothing here may begin: what ended last has to be settled first, which is not
        done, or Redis is gone, and has been for more seconds than the lease is sure to last."""
        since, now = self.route.outage.since, monotonic()
        if self.settle_first and (since or self.engaged):
            return True
        if since and now - since >= sure:
            return True
        return bool(since or self.engaged) and self._first_is_old(now)

    def _first_is_old(self, now: float) -> bool:
        """Whether the first job that waits is to be asked for."""
        try:
            id_, _, acquired = self.todo[0]
        except IndexError:
            return False
        return self.is_old(id_, acquired, now)

    @property
    def doubted(self) -> bool:
        """True if the supervisor had doubts that are not answered yet."""
        return self._page.doubt_counts[self.index] != self.doubt

    def is_old(self, id: bytes, acquired: int, now: float) -> bool:
        """True if the job has to be asked for before it begins: what is known of it is older than a
        third of the lease, or the supervisor saw this process stopped since."""
        if not self.doubted:
            trust = self.trust_s
            if now - self.named_at < trust or acquired >= self.clock.ms(now - trust):
                return False
        return id not in self.acked

    def expires(self, id: bytes, value: bytes, now: float) -> bool:
        """Whether a job's time to live is over before it begins. Then it goes back, and expires
        where it waits."""
        if id in self.acked or not has_expired(value, self.clock.ms(now)):
            return False
        self.back.append((id, value))
        return True

    @property
    def engaged(self) -> bool:
        """Whether calls are under way whose replies are not waited for: nothing else is said to the
        queue before they are there."""
        return self.route.under_way is not None

    @property
    def sends_on(self) -> bool:
        """Whether what ended is still to be sent on to other queues, or on its way there, beside
        what else is said to this one."""
        route = self.route
        return route.forward is not None or (route.apart and self.owes_forward and not route.away)

    @property
    def owes(self) -> bool:
        """Whether there is something to be reported, or to be asked for, before what is held here
        is known."""
        return bool(self.pending or self.flight is not None or self.doubtful or self.engaged)

    # -- life --------------------------------------------------------------------------------------

    def registering(
        self,
        name: str,
        *,
        priority: int,
        lease_ms: int,
        slots: int,
        jobs: int,
        limits: Mapping[str, tuple[int, int]] | None = None,
        select: str = "",
    ) -> Calls[None]:
        """Join the queue under a name nobody had."""
        self.name, self.trust_s = name, lease_ms / 3000
        call = self.register_call(
            Window(jobs, self._bytes_window),
            priority=priority,
            lease_ms=lease_ms,
            slots=slots,
            limits=limits,
            select=selector(select) if select else None,
        )
        try:
            reply = yield call
        except ConsumerRefused:
            if not (yield from self.making_way(lease_ms)):
                raise
            reply = yield call
        if not self.registered(reply):
            log.error(
                "queue %s: Redis has lost its data, with the jobs that waited or were held then",
                self.queue,
            )

    def preparing(self, tasks: Sequence[str]) -> Calls[None]:
        """Learn the queue's options; jobs that were parked for the lack of one of these tasks come
        back."""
        counts = yield commands.counts(self.keys, oldest=False)
        self.most = int(counts.meta.get("max_deliveries", "10"))
        if tasks:
            yield from self._unparking(tasks)

    def declaring(
        self, declarations: Iterable[Declaration], app: str, signer: Signer | None
    ) -> Calls[None]:
        """Say which schedules the code declares."""
        yield from declaring(self.keys, self.name, self.term, app, declarations, signer)

    def _unparking(self, tasks: Sequence[str], until: float = inf) -> Calls[None]:
        cursor = "0"
        while monotonic() < until:
            cursor, _ = yield commands.unpark(self.keys, cursor, tasks)
            if cursor == "0":
                break

    def unregister(self, for_good: bool = False) -> None:
        """`leaving`, waiting for each reply. Raises the server errors."""
        run_course(self.leaving(for_good), self.run)

    def leaving(self, for_good: bool = False) -> Calls[None]:
        """Leave the queue; what is held goes back uncounted. for_good: not to be replaced at once,
        by a worker that knows the same tasks. Others may know more of them, as in a deploy: what
        was parked here goes to those that stay."""
        if not self.term:
            return
        call = self.unregister_call()
        try:
            yield from self.reports.finishing()
            while (yield call).held:
                pass
        except RegistrationLost:
            log.debug("the lease of %s had ended before it left", self.name)
        self.forget()
        if for_good and self.lacked:
            counts = yield commands.counts(self.keys, oldest=False)
            if counts.interested or counts.notified or counts.not_interested:
                yield from self._unparking(sorted(self.lacked), monotonic() + UNPARK_S)

    def begin(self) -> None:
        """As `ConsumerState.begin`."""
        super().begin()
        self.released = self.held_up = False

    def give_up(self) -> int:
        """The registration is lost: drop what is unstarted, and results nobody would take.
        Returns how many results."""
        stale = len(self.acks) + len(self.dones) + len(self.others) - len(self.early)
        while self.early:
            self.early.popitem()[1](False)
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
        self.acked.clear()
        self.stops.clear()
        self.reports.clear()
        self.flight = None
        self.follow_ups.clear()
        self.settle_first = False
        return stale

    def check_wake(self) -> None:
        """Raises QueueDamaged where the list of its wake-ups is of another type."""
        name = self.keys.wake(self.name)[len(self.keys.base) :]
        wrong = self._connection.run(commands.check_types(self.keys, [name]), queue=self.queue)
        if wrong:
            raise damaged(self.queue, self.keys.base, wrong)

    def runs_in(self, kind: int) -> bool:
        """Whether jobs of this queue are for that executor, as far as is known."""
        return kind in (self.executors or UNKNOWN)

    def condemn(self, id: bytes) -> None:
        """Have the supervisor kill this process, if this job runs in it then."""
        self._page.condemn(id)

    # -- jobs that wait ----------------------------------------------------------------------------

    def unfit(self, id: bytes, value: bytes, outcome: Unfinished | None) -> None:
        """A job cannot be run here: what becomes of it, or None to pass it on."""
        if outcome is None:
            self.passing.append((id, value))
        else:
            if outcome.outcome == "park" and len(self.lacked) < LACKED:
                self.lacked.add(outcome.task)
            self.others.append(outcome)

    def begins(self, id: bytes, value: bytes, acquired: int) -> bool:
        """Whether a job that an executor takes on may begin: it is held here, which Redis said a
        moment ago, and its time to live is not over. Else it goes its way. From any thread."""
        now = monotonic()
        if self.unsettled.get(id) != value:
            self.cancelled.discard(id)
            self.stops.refused(id)
        elif self.is_old(id, acquired, now):
            self.todo.append((id, value, acquired))  # the main thread asks for it
        else:
            return not self.expires(id, value, now)
        return False

    def put_off(self, id: bytes, value: bytes, acquired: int, now: float, seconds: float) -> None:
        """A job that has not begun is to wait aside for so long, and then in its place."""
        deliveries = parse_value(value)[0].deliveries
        later = Retried(id, round(seconds * 1000), "aside", False, b"", deliveries)
        head = value.partition(b";")[0]
        self.others.append(Unfinished(id, value, head, "", acquired, now, now, "snooze", "", later))

    def recalling(self, window: int) -> Calls[list[bytes]]:
        """Pull, and ask what is held: [id, value, ...] of both, in the order of taking (H-18)."""
        recall, asked = Recall(), Window(window, self._bytes_window)
        self.asked_at = asked_at = monotonic()
        doubt = self._page.doubt_counts[self.index]
        while True:
            pulled = yield self.recall_call(asked, recall)
            if recall.read(pulled):
                break
        jobs = self.recalled(pulled, recall)
        self.named_at, self.doubt = asked_at, doubt
        if jobs or self.state == "interested":
            self.released = False
        return jobs

    def hold(self, now: float, behind_main: bool = False) -> None:
        """Jobs went back because nothing here was free for them. Other executors may have room for
        what comes behind, but the same jobs would come first: look again later, and less and
        less."""
        if now - self.hold_until > 2.0:
            self.hold_s = 0.0
        self.hold_s = min(2.0, max(0.02, 2 * self.hold_s))
        self.hold_until = now + self.hold_s
        self.behind_main = behind_main

    @property
    def crowded(self) -> bool:
        """True if more jobs wait for the main thread than its window has room for. They came with
        the room of other executors."""
        return len(self.todo) > self.prefetch.window

    def add(self, jobs: Sequence[bytes], acquired: int) -> None:
        """Put jobs, [id, value, ...], into `todo`. acquired: ms, Redis's clock."""
        if len(jobs) == 2:
            self.todo.append((jobs[0], jobs[1], acquired))
            return
        flat = iter(jobs)
        self.todo.extend(zip(flat, flat, repeat(acquired), strict=False))

    def release_unstarted(self) -> int:
        """Unstarted jobs are to go back; returns how many. The executor may take some meanwhile."""
        jobs = self.take_unstarted()
        self.back.extend((id_, value) for id_, value, _ in reversed(jobs))
        return len(jobs)

    def take_unstarted(self) -> list[Unstarted]:
        """Take back what has not begun, in its order, but for what was acked early. The executor
        may take some meanwhile."""
        jobs: list[Unstarted] = []
        kept: list[Unstarted] = []
        while self.todo:
            try:
                job = self.todo.popleft()
            except IndexError:
                break  # the main thread was faster
            (kept if job[0] in self.acked else jobs).append(job)
        self.todo.extendleft(reversed(kept))
        return jobs

    def ack_meanwhile(self, row: Ack) -> None:
        """The main thread's next job, whose early ack is under way, waits for the answer before all
        others of its queue."""
        self.settle_first = True
        self.early[row[0]] = partial(self._acked, row)

    def _acked(self, row: Ack, begins: bool) -> None:
        if begins:
            self.acked.add(row[0])
            self.todo.appendleft((row[0], row[1], row[4]))
