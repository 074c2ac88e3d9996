"""The supervisor's calls: it renews the leases of the living, and takes back what the dead held."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rqueue.errors import QueueDamaged, RegistrationLost, RQueueError
from rqueue.logs import logger
from rqueue.model.signing import Signer
from rqueue.protocol import commands
from rqueue.protocol.commands import ScriptCall
from rqueue.protocol.commands.admin import Stopping
from rqueue.protocol.commands.consumers import Left, Ran, Renewed
from rqueue.protocol.crash_report import log_died
from rqueue.protocol.forwarding import PendingForward
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.scheduling import PendingRefill
from rqueue.protocol.server_clock import ServerClock
from rqueue_workers.pool.processes import WorkerProcess
from rqueue_workers.status_page import Running, worker_of

log = logger("rqueue.pool")


def ran(job: Running, clock: ServerClock) -> Ran:
    """The report on a job that was running: it began no earlier than it was acquired."""
    return Ran(job.id, job.acquired, max(job.acquired, clock.ms(job.started)))


class Renewal:
    """Renews the leases of all our consumers in one queue (and looks after what others left).

    living: the consumer names of now, and whether each worker is at work. lost: called with the
    names that were not registered at two renewals in a row although their workers are at work.
    add: called with what is to be done next: jobs are on their way to other queues, or schedules
    have few ticks left, which `signer` signs.
    """

    def __init__(
        self,
        keys: QueueKeys,
        lease_ms: int,
        living: Callable[[], Mapping[str, bool]],
        lost: Callable[[str, Sequence[str]], None],
        clock: ServerClock,
        add: Callable[[Any], None],
        signer: Signer | None = None,
    ) -> None:
        self.queue = keys.queue
        self._keys = keys
        self._add = add
        self._signer = signer
        self._lease_ms = lease_ms
        self._living = living
        self._lost = lost
        self._clock = clock
        self._sent: set[str] = set()
        self._damaged = False
        self._missing: set[str] = set()
        self._naming: set[str] = set()
        self._named: set[str] = set()

    def call(self) -> ScriptCall[Renewed]:
        """Name who lives now, not who lived when the renewal became due. Once more under its former
        name too, where a worker had to register again: who is named lives, and the end of its lease
        is no crash of its jobs."""
        living = self._living()
        self._sent = {name for name, at_work in living.items() if at_work}
        self._naming = set(living)
        workers = {worker_of(name) for name in living}
        former = [name for name in self._named - self._naming if worker_of(name) in workers]
        return commands.renew(self._keys, self._lease_ms, [*living, *former])

    def answered(self, reply: Renewed) -> bool:
        """Tell of leases that ended all the same: Redis was gone, or this process was stopped. What
        the dead held goes back in steps, one at once after the other."""
        self._clock.read(reply.now)
        if self._damaged:
            self._damaged = False
            log.warning("supervisor: queue '%s' works again", self.queue)
        self._named = self._naming
        # once may mean that it is just registering again: after an outage they all are
        missing = self._sent.intersection(reply.gone)
        ended = sorted(missing & self._missing)
        self._missing = missing
        if ended:
            self._lost(self.queue, ended)
        if reply.reclaimed:
            log.info(
                "queue %s: took back what consumers held whose leases had ended (%d)",
                self.queue,
                reply.reclaimed,
            )
        log_died(log, self.queue, reply.died)
        if reply.outgoing:
            self._add(PendingForward(self._keys, self._add))
        if reply.lacking:
            self._add(PendingRefill(self._keys, reply.lacking, self._signer))
        return reply.more

    def refused(self, error: RQueueError) -> None:
        """Say so, of a damaged queue once: without renewals the leases will end."""
        if isinstance(error, QueueDamaged):
            if self._damaged:
                return
            self._damaged = True
        log.error("cannot renew leases in queue %s: %s", self.queue, error)


BEGUN_AFTER = 0.1
"""Seconds after which it is noted that a job runs: shorter ones cost nothing."""


NOTES_MOST = 1000
"""Jobs that one note names."""


class RunningNotes:
    """Notes in Redis, for each of our consumers in one queue, which jobs have been running for a
    while: when this host dies, it is they that are charged, and no others (X-24).

    running: who runs what for how long, as `WorkerProcesses.running` says it. A note is written
    when a job is to be added; what ended since the last one is left in it, since it is held no
    more.
    """

    def __init__(
        self,
        index: int,
        keys: QueueKeys,
        running: Callable[[float, float], Iterable[tuple[WorkerProcess, list[Running]]]],
        clock: ServerClock,
    ) -> None:
        self.queue = keys.queue
        self._index = index
        self._keys = keys
        self._running = running
        self._clock = clock
        self._noted: dict[str, set[tuple[str, float]]] = {}
        self._sent: tuple[str, set[tuple[str, float]]] = "", set()

    def due(self, now: float) -> bool:
        """Whether there is a job that is not noted yet."""
        return next(self._news(now), None) is not None

    def _news(self, now: float) -> Iterator[tuple[str, list[Running]]]:
        there = set()
        for process, jobs in self._running(now, BEGUN_AFTER):
            if not process.serves(self._index):
                continue
            consumer = process.consumer(self._index)
            there.add(consumer)
            mine = [job for job in jobs if job.queue == self._index][:NOTES_MOST]
            if not {(job.id, job.started) for job in mine} <= self._noted.get(consumer, set()):
                yield consumer, mine
        for consumer in self._noted.keys() - there:
            del self._noted[consumer]

    def call(self) -> ScriptCall[int] | None:
        """What runs now in one consumer of which there is news."""
        now = time.monotonic()
        consumer, jobs = next(self._news(now), ("", []))
        if not consumer:
            return None
        self._sent = consumer, {(job.id, job.started) for job in jobs}
        return commands.note_running(self._keys, consumer, [ran(job, self._clock) for job in jobs])

    def answered(self, _reply: int) -> bool:
        """Go on with the next consumer."""
        consumer, jobs = self._sent
        self._noted[consumer] = jobs
        return True

    def refused(self, error: RQueueError) -> None:
        """Take it that the lease had ended; the worker will have another name."""
        consumer, jobs = self._sent
        self._noted[consumer] = jobs
        if not isinstance(error, RegistrationLost | QueueDamaged):
            log.error("cannot note what runs in queue %s: %s", self.queue, error)


class KillLooks:
    """Asks, of the jobs of one queue that run for long, whether they are to be killed: code that
    holds the interpreter's lock lets its worker hear of nothing."""

    def __init__(
        self, index: int, keys: QueueKeys, running: Iterable[tuple[WorkerProcess, list[Running]]]
    ) -> None:
        self.queue = keys.queue
        self._keys = keys
        self._todo = [
            (process, job)
            for process, jobs in running
            for job in jobs
            if job.queue == index and not process.killed
        ]

    def call(self) -> ScriptCall[Stopping] | None:
        """Of the next job."""
        return commands.read_stop(self._keys, self._todo[-1][1].id) if self._todo else None

    def answered(self, reply: Stopping) -> bool:
        """Go on with the next job."""
        process, job = self._todo.pop()
        if reply.kill and reply.stage != "ended":
            process.doomed.add((job.id, job.started))
        return bool(self._todo)

    def refused(self, error: RQueueError) -> None:
        """It is asked again behind the next renewal."""
        log.debug("cannot ask whether jobs of queue %s are to be killed: %s", self.queue, error)


class Stopped:
    """Tells who waits for it that jobs of one queue which were cancelled died with their
    process. Nobody else can: a consumer may also be gone because its lease ended."""

    def __init__(self, index: int, keys: QueueKeys, process: WorkerProcess) -> None:
        self.queue = keys.queue
        self._keys = keys
        self._consumer = process.consumer(index)
        ran = {
            job.id for job in (*process.page.running(), *process.condemned) if job.queue == index
        }
        self._ids = sorted(ran)

    def call(self) -> ScriptCall[int] | None:
        """Say it, where there are such jobs."""
        if not self._ids:
            return None
        return commands.note_stop(self._keys, self._consumer, "ended", self._ids)

    def answered(self, _reply: int) -> bool:
        """Nothing more is to be said."""
        return False

    def refused(self, error: RQueueError) -> None:
        """Who looks finds that the consumer is gone, and how far it was."""
        log.error("cannot say what was killed in queue %s: %s", self.queue, error)


class Reclaim:
    """Takes back at once what a dead worker's consumer held in one queue.

    Of its jobs those in `charged` were running, and count an attempt and a crash with this cause
    JSON.
    """

    def __init__(
        self,
        keys: QueueKeys,
        consumer: str,
        cause: bytes,
        charged: Sequence[Ran],
        clock: ServerClock,
    ) -> None:
        self.queue = keys.queue
        self._keys = keys
        self._consumer = consumer
        self._cause = cause
        self._charged = charged
        self._clock = clock

    def call(self) -> ScriptCall[Left]:
        """Take back one slice."""
        return commands.reclaim(self._keys, self._consumer, self._cause, self._charged)

    def answered(self, reply: Left) -> bool:
        """Go on while it holds jobs."""
        self._clock.read(reply.now)
        log_died(log, self.queue, reply.died)
        return reply.held > 0

    def refused(self, error: RQueueError) -> None:
        """Take it that it had left, or that its lease ended first: this was done already."""
        if isinstance(error, QueueDamaged):
            log.warning(
                "what %s held in %s goes back when its lease has ended and the queue is repaired",
                self._consumer,
                self.queue,
            )
        elif not isinstance(error, RegistrationLost):
            log.error("cannot take back what %s held in %s: %s", self._consumer, self.queue, error)
