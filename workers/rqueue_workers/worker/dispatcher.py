"""The desk: settles what ended, pulls what there is room for, deals it out to the lanes.

The main thread works at it between jobs; while a job of its own runs long, the courier does. One
lock is taken for each batch, none for a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from time import monotonic

from rqueue.errors import ConnectionLost, RedisTimeout, RegistrationLost, ServerError
from rqueue.logs import logger
from rqueue.model.job import Delivery
from rqueue.model.job_order import came_back, overtakers
from rqueue.protocol.wake import Wake, handed_over
from rqueue.transport.wake_listener import Listener
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.worker.arrivals import Unstarted
from rqueue_workers.worker.attempt import Executor, Unfit
from rqueue_workers.worker.executors.base import Job, Lane
from rqueue_workers.worker.executors.main_thread import Now, Slot
from rqueue_workers.worker.executors.threads import ThreadLane
from rqueue_workers.worker.outage import Outage
from rqueue_workers.worker.queue_polling import Turns
from rqueue_workers.worker.subscription import CHUNK, Hand
from rqueue_workers.worker.task_kind import Sorter
from rqueue_workers.worker.task_plans import ASYNC, MAIN, THREAD

log = logger("rqueue.worker")

LINGER_S = 0.002
"""Seconds that ended jobs of busy lanes wait for company, to be settled together."""

_MAIN_ALONE = {MAIN}

POLL_S = 0.004
"""Seconds between looks at the wake lists while there is work anyway."""


class Desk:
    """All that the main thread and the courier share.

    rejoin: what to do when a hand has lost its registration; called with the lock held.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        hands: Sequence[Hand],
        lanes: dict[int, Lane],
        executor: Executor,
        listener: Listener,
        slot: Slot,
        rejoin: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.hands = list(hands)
        self.lanes = lanes
        self.lock = Lock()
        self.outage = Outage()
        self.turns = Turns(hands, spec.strict)
        self.closing = False
        """No more jobs are pulled."""
        self.kicked = False
        self.slot = slot
        self._listener = listener
        self._by_name: dict[str, Hand] = {}
        self._executor = executor
        self._rejoin = rejoin
        self._sorter = Sorter(executor.plans.values())
        self._threaded = THREAD in lanes
        self._strict = spec.strict
        self._prefetch = spec.prefetch
        self._flying: Hand | None = None
        self._poll_at = 0.0

    # -- one step ----------------------------------------------------------------------------------

    def guarded(
        self, action: Callable[..., None], *arguments: object, job: Now | None = None
    ) -> bool:
        """Do something under the lock; an outage is noted, a lost registration made good. Whether
        Redis could be used.

        job: said by the courier, the one that runs in the main thread. If that has ended, nothing
        is done: the main thread takes the lock once after each batch, before it waits for wake-ups,
        so the two never use a connection together.
        """
        with self.lock:
            if job is not None and self.slot.job is not job:
                return False
            try:
                try:
                    action(*arguments)
                except RegistrationLost as error:
                    log.warning("%s", error)
                    self._rejoin()
            except ServerError as error:
                self.outage.note(error)
                return False
            return True

    def step(self, hand: Hand, job: Now | None = None) -> None:
        """Settle what ended in a hand and pull. job: see `guarded`; the main thread is in it."""
        self.guarded(self._step, hand, job is not None, job=job)

    def _step(self, hand: Hand, blocked: bool) -> None:
        if self._flying is not None:
            self.land()
        if hand.lost_reply:
            self._recover(hand, blocked)
        elif hand.passing and self._passed_on(hand):
            pass  # the others first
        else:
            self._take_in(hand, hand.settle(self.window(hand, blocked)), blocked)
        if self.outage.since:
            self.outage.over()
        self.poll()  # last: somebody may wait for what was settled

    def post(self, hand: Hand) -> None:
        """`step` for a hand that has more to run: the reply is read when next somebody works at the
        desk, and the jobs run meanwhile."""
        self.guarded(self._post, hand)

    def _post(self, hand: Hand) -> None:
        self.land()
        if hand.lost_reply or hand.passing or hand.pending > CHUNK or self.closing:
            self._step(hand, False)
            return
        hand.send(self.window(hand, False))
        self._flying = hand
        self.poll()

    def clear(self, hand: Hand) -> None:
        """The main thread is in a long job: its other jobs are to go back. Raises the server
        errors."""
        # what is under way comes behind what is here: apart from each other they would overtake
        self.land()
        if hand.give_back():
            # other lanes may still have room, but not for these: look again later
            hand.hold(monotonic())

    def land(self) -> None:
        """Read the reply that is under way, if one is. Raises the server errors."""
        hand = self._flying
        if hand is not None:
            self._flying = None
            self._take_in(hand, hand.receive(), False)

    def _passed_on(self, hand: Hand) -> bool:
        hand.pass_on()
        return hand.state == "interested"

    def window(self, hand: Hand, blocked: bool) -> int:
        """Jobs that a hand may hold after this step, all in all."""
        staying = len(hand.ids) - hand.pending
        if staying < 0:
            staying = 0
        if self.closing or (self._strict and not self.turns.pulls(hand)):
            return staying
        room = 0
        seen = hand.lanes
        if not self._threaded and not blocked and (MAIN in seen or not seen):
            room = max(0, hand.credit.window - len(hand.todo))
        if seen != _MAIN_ALONE:
            room += self._room_beside(hand, blocked)
        if self._prefetch and room > self._prefetch - staying:
            room = max(0, self._prefetch - staying)
        return staying + room

    def _room_beside(self, hand: Hand, blocked: bool) -> int:
        """Jobs of this hand that the lanes have room for."""
        room = 0
        if monotonic() >= hand.hold_until or not (
            blocked or any(lane.blocked for lane in self.lanes.values())
        ):
            for kind, lane in self.lanes.items():
                if kind in hand.lanes or (kind == THREAD and not hand.lanes):
                    room += lane.room
        return room

    def wants(self, hand: Hand, now: float, blocked: bool = False) -> bool:
        """Whether there is something to tell or to ask for."""
        if hand.lost_reply or hand.flight is not None:
            return True
        if hand.pending and not self._lingers(hand, now):
            return True
        if self.closing:
            return False
        state = hand.state
        if state == "notified" or 0.0 < hand.timer_at <= now:
            return True
        window = self.window(hand, blocked)
        if window <= hand.held:
            return blocked and state == "interested"
        return state == "not_interested" and not hand.tight

    def _lingers(self, hand: Hand, now: float) -> bool:
        if not self.lanes or self.closing:
            return False
        if hand.others or hand.back or hand.passing or hand.dones or not hand.acks:
            return False
        if not any(lane.todo for lane in self.lanes.values()):
            return False
        finished: float = hand.acks[0][6]
        return now < finished + LINGER_S and len(hand.acks) < 100

    # -- jobs in -----------------------------------------------------------------------------------

    def deal(self, hand: Hand, jobs: Sequence[bytes], acquired: int) -> None:
        """Put jobs, [id, value, ...], where they will run. acquired: ms, Redis's clock."""
        if self.closing or hand.back:
            # a lane would begin them at once, and before those that are about to go back
            hand.back.extend((jobs[i], len(jobs[i + 1])) for i in range(0, len(jobs), 2))
            return
        if not self.lanes:
            hand.add(jobs, acquired)
            return
        for i in range(0, len(jobs), 2):
            id_, value = jobs[i], jobs[i + 1]
            if self._threaded or self._sorter.is_async(value):
                self.divert(hand, id_, value, acquired)
            else:
                hand.lanes.add(MAIN)
                hand.todo.append((id_, value, acquired))

    def divert(self, hand: Hand, id: bytes, value: bytes, acquired: int) -> None:
        """Give one job to the lane it belongs to."""
        now = monotonic()
        try:
            head, plan, args, kwargs, opts = self._executor.decode(
                hand.queue, hand.most, id, value, acquired, now, hand.ms(now)
            )
        except Unfit as unfit:
            hand.unfit(id, value, unfit.row)
            return
        if plan.lane == MAIN:
            hand.todo.append((id, value, acquired))
            return
        hand.lanes.add(plan.lane)
        job = Job(hand, id, value, acquired, head, plan, args, kwargs, opts)
        self.lanes[plan.lane].submit((job,))

    # -- wake-ups ----------------------------------------------------------------------------------

    def listen(self, hand: Hand) -> None:
        """Listen for a hand that was registered."""
        label = f"{hand.name} {hand.queue}"  # the name is the same in all queues
        self._by_name[label] = hand
        self._listener.add(label, hand.keys.wake(hand.name))

    def unlisten(self, hand: Hand) -> None:
        """Hear no more of it."""
        self._by_name.pop(f"{hand.name} {hand.queue}", None)
        self._listener.remove(hand.keys.wake(hand.name))

    def poll(self) -> None:
        """Hear what came meanwhile, if it was not looked for just now. Raises the server errors."""
        now = monotonic()
        if now < self._poll_at or not self._by_name:
            return
        self._poll_at = now + POLL_S
        for wake in self._listen(0):
            self.hear(wake)

    def _listen(self, timeout: float | None, interrupt: int | None = None) -> list[Wake]:
        try:
            return self._listener.wait(timeout, interrupt)
        except (ConnectionLost, RedisTimeout):
            # a connection that died unnoticed says so when it is used: only a fresh one can tell
            # whether Redis is gone
            return self._listener.wait(0)

    def hear(self, wake: Wake) -> None:
        """Act on a wake-up."""
        hand = self._by_name.get(wake.consumer)
        if hand is None:
            return
        handed = handed_over(wake.element)
        if handed is not None:
            arrivals = hand.arrivals
            if handed[0] in hand.ids or arrivals.is_old(*handed):
                return
            hand.ids.add(handed[0])
            if hand.state == "interested":
                hand.state = "notified"
            if hand.flight is not None or hand.lost_reply or arrivals.held_up:
                arrivals.aside += handed  # a reply that is not read yet may stand before it
            elif hand.gave_back:
                hand.back.append((handed[0], len(handed[1])))
            else:
                self.deal(hand, handed, hand.ms(monotonic()))
        elif wake.kind == "revoked":
            hand.ids.discard(wake.id.encode())
            self._revoke(hand, wake.id.encode())
        elif wake.kind == "reconnected":
            hand.lost_reply = True
            hand.arrivals.reconnected()
        else:
            hand.state = "notified"

    def _revoke(self, hand: Hand, id: bytes) -> None:
        for entry in list(hand.todo):
            if entry[0] == id:
                try:
                    hand.todo.remove(entry)
                    return
                except ValueError:
                    break  # it has just begun
        for lane in self.lanes.values():
            for job in list(lane.todo):
                if job.hand is hand and job.id == id:
                    job.cancelled = True
                    try:
                        lane.todo.remove(job)
                        return
                    except ValueError:
                        break
            for job in list(lane.running.values()):
                if job.hand is hand and job.id == id:
                    lane.revoke(job)
                    return
        hand.cancelled.add(id)
        self.slot.revoke(hand, id)

    # -- in their order ----------------------------------------------------------------------------

    def _take_in(self, hand: Hand, jobs: list[bytes], blocked: bool) -> None:
        """Put what a reply brought where it will run: behind what was handed over before it, also
        where that is not heard of yet, before what was handed over after it (X-25)."""
        arrivals = hand.arrivals
        if not jobs and not arrivals.aside:
            return
        if jobs and arrivals.overtake(hand.ids):
            arrivals.held_up = True
            try:
                for wake in self._listen(0):
                    self.hear(wake)
                if arrivals.overtake(hand.ids):
                    arrivals.ask()
                    hand.ids.difference_update(jobs[::2])
                    hand.lost_reply = True
                    self._recall(hand, blocked)
                    return
            except ServerError:
                hand.ids.difference_update(jobs[::2])
                hand.lost_reply = True
                raise
            finally:
                arrivals.held_up = False
        mixed = bool(arrivals.aside)
        jobs = arrivals.merge(jobs)
        if not jobs:
            return
        if mixed or (hand.todo and came_back(Delivery(jobs[0], jobs[1]))):
            taken = self._take_unstarted(hand)
            taken += [(jobs[i], jobs[i + 1], hand.now) for i in range(0, len(jobs), 2)]
            self._deal_in_order(hand, taken)
        else:
            self.deal(hand, jobs, hand.now)

    def _deal_in_order(self, hand: Hand, taken: list[Unstarted]) -> None:
        """Deal jobs, in the order of taking. One that was handed over before an earlier one came
        back goes back itself: others may wait between the two (Q-01)."""
        early = overtakers([Delivery(id_, value) for id_, value, _ in taken])
        for id_, value, acquired in taken:
            if id_.decode() not in early:
                self.deal(hand, (id_, value), acquired)
        back = [(id_, len(value)) for id_, value, _ in taken if id_.decode() in early]
        hand.back.extend(back)

    def _recover(self, hand: Hand, blocked: bool) -> None:
        """Tell what ended, then ask what is held (H-18)."""
        hand.settle(None)
        self._recall(hand, blocked)

    def _recall(self, hand: Hand, blocked: bool) -> None:
        """Ask what is held; what has not begun is begun in the queue's order."""
        hand.ids.difference_update(hand.arrivals.aside[::2])
        # not by a look at what waits and runs: jobs go from hand to hand while one looks
        known = set(hand.ids)
        gave_back = hand.gave_back
        flat = hand.recall(self.window(hand, blocked))
        named = set(flat[::2])
        waiting = [(flat[i], flat[i + 1], hand.now) for i in range(0, len(flat), 2)]
        waiting = [job for job in waiting if job[0] not in known]
        place = {id_: at for at, id_ in enumerate(flat[::2])}
        for job in self._take_unstarted(hand):
            # what is not named here was taken out of these hands; what has just begun is refused
            if job[0] in named:
                waiting.append(job)
            else:
                hand.ids.discard(job[0])
        waiting.sort(key=lambda job: place[job[0]])
        later: list[Unstarted] = []
        if gave_back:  # what was handed over then is behind what went back
            later = [job for job in waiting if not came_back(Delivery(job[0], job[1]))]
            waiting = [job for job in waiting if job not in later]
        self._deal_in_order(hand, waiting)
        hand.back.extend((id_, len(value)) for id_, value, _ in later)

    def _take_unstarted(self, hand: Hand) -> list[Unstarted]:
        jobs = []
        while hand.todo:
            try:
                jobs.append(hand.todo.popleft())
            except IndexError:
                break  # the main thread was faster
        for lane in self.lanes.values():
            waiting = lane.take_unstarted()
            jobs += [(job.id, job.value, job.acquired) for job in waiting if job.hand is hand]
            lane.submit([job for job in waiting if job.hand is not hand])
        return jobs

    def running_in(self, hand: Hand) -> set[bytes]:
        """Ids of a hand's jobs that run."""
        ids = set()
        running = self.slot.job
        if running is not None and running[0] is hand:
            ids.add(running[1])
        for lane in self.lanes.values():
            ids |= {job.id for job in list(lane.running.values()) if job.hand is hand}
        return ids

    # -- waiting -----------------------------------------------------------------------------------

    def rest(self, now: float) -> float | None:
        """Seconds until something has to be looked at without being told; None = nothing has."""
        times = [hand.timer_at - now for hand in self.hands if hand.timer_at]
        for hand in self.hands:
            if hand.hold_until > now and self.lanes:
                times.append(hand.hold_until - now)
            if hand.pending and hand.acks:
                times.append(hand.acks[0][6] + LINGER_S - now)
        for lane in self.lanes.values():
            again, gave_back = lane.stall(now)
            if again:
                times.append(again)
            for hand in gave_back:
                hand.hold(now)
            if isinstance(lane, ThreadLane) and (again := lane.limits(now)):
                times.append(again)
        if any(hand.back for hand in self.hands):
            return 0.0
        return max(0.0, min(times)) if times else None

    def wait(self, timeout: float | None, interrupt: int) -> bool:
        """Wait for a wake-up, or for `interrupt` to become readable; True if there was the one."""
        try:
            wakes = self._listen(timeout, interrupt)
        except ServerError as error:
            self.outage.note(error)
            return False
        if wakes:
            with self.lock:
                for wake in wakes:
                    self.hear(wake)
        return bool(wakes)

    @property
    def running(self) -> int:
        """Jobs that run in lanes."""
        return sum(len(lane.running) for lane in self.lanes.values())

    @property
    def async_lane(self) -> Lane | None:
        """The event loop's lane, if there is one."""
        return self.lanes.get(ASYNC)
