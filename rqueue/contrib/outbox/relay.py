"""Moves jobs from the outbox into their queues, each exactly once, wherever it is killed.

The jobs of a queue go in batches with numbers. A batch gets its number in a transaction of the
database, is stored by a step of the queue that notes the number, and is deleted in another
transaction. The next number is given when nothing of the last one is left. So:

- killed after the number was given: the next relay finds the batch and sends it again;
- killed after it was stored: the queue answers that it knows the number, and it is deleted;
- killed after it was deleted: nothing is left to do.

Two relays at once send the same batch, of which the queue stores one. On PostgreSQL the second one
stands by until the first one ends.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rqueue.client._sync.queue import Queue
from rqueue.client.numbered_batches import NumberedBatches
from rqueue.contrib.outbox.store import Bell, OutboxStore, Taken
from rqueue.errors import QueueFull, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.model.job import JobState
from rqueue.protocol.put_buffer import backoff

__all__ = ["BATCH", "KEEP_S", "POLL_S", "Relay", "problem_of"]

log = logger("rqueue.outbox")

BATCH = 500
"""Jobs that go into a queue in one step."""

POLL_S = 1.0
"""Between two looks where the database says nothing by itself."""

LISTEN_S = 10.0
"""Between two looks where it does: for what was written without a word."""

KEEP_S = 7 * 86_400.0
CLEAN_S = 3600.0
CLEANED = 500

_MAY_RUN = frozenset(
    state
    for state in JobState
    if state is JobState.DEAD or not (state.ended or state is JobState.UNKNOWN)
)
"""A dead letter may be requeued."""


@dataclass(slots=True)
class _Pace:
    """How a queue is sent to: `batch` jobs at a time, not before `again` (monotonic). Halved where
    it refuses, to find the job that it refuses; doubled where it accepts."""

    batch: int
    again: float = 0.0
    failures: int = 0


_NO_TABLE = re.compile(r"no such table|relation .* does not exist")
"""What SQLite and PostgreSQL say of a table that is not there."""


@dataclass(slots=True)
class Relay:
    """Moves the jobs of one outbox.

    store: the database. queue: gives the queue of a name. batch: jobs that go into a queue in one
    step, 1000 at most. poll: seconds between two looks where nothing tells that there are jobs:
    every database but PostgreSQL with psycopg. keep: seconds for which it is remembered what was
    done once, at the least; for a job that may run yet, always. on_moved: called with the number
    of jobs of each batch that is in its queue.
    """

    store: OutboxStore
    queue: Callable[[str], Queue]
    batch: int = BATCH
    poll: float = POLL_S
    keep: float = KEEP_S
    on_moved: Callable[[int], object] | None = None
    _paces: dict[str, _Pace] = field(default_factory=dict)
    _clean_at: float = 0.0
    _failures: int = 0

    # -- run ---------------------------------------------------------------------------------------

    def run(self, stop: threading.Event) -> None:
        """Move jobs until `stop` is set. Goes on while Redis or the database cannot be reached,
        with a warning in the log."""
        errors: tuple[type[Exception], ...] = (RQueueError, *self.store.errors)
        while not stop.is_set():
            try:
                with self.store.bell() as bell:
                    if self._leads(bell, stop):
                        self._run(bell, stop)
            except errors as error:
                self._failures += 1
                level = logging.WARNING if self._failures == 1 else logging.DEBUG
                said = problem_of(error, self.store)
                log.log(level, "outbox: %s; it is tried again and again", said)
                stop.wait(backoff(self._failures))

    def _leads(self, bell: Bell, stop: threading.Event) -> bool:
        """Wait until no other relay moves these jobs; False where it was stopped before."""
        said = False
        while not stop.is_set():
            if bell.leads():
                return True
            if not said:
                log.info("outbox: another relay moves its jobs; this one stands by")
                said = True
            stop.wait(self.poll)
        return False

    def _run(self, bell: Bell, stop: threading.Event) -> None:
        while not stop.is_set():
            moved = self.move_all(stop)
            self._failures = 0  # not before: what opens may have no tables yet
            if time.monotonic() >= self._clean_at:
                self.clean()
                self._clean_at = time.monotonic() + CLEAN_S
            if not moved:
                self._wait(bell, stop)

    def _wait(self, bell: Bell, stop: threading.Event) -> None:
        """Until there may be something to do."""
        now = time.monotonic()
        rests = [pace.again - now for pace in self._paces.values() if pace.again > now]
        if not bell.listens:
            stop.wait(min([self.poll, *rests]))
            return
        end = now + min([LISTEN_S, *rests])
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            if bell.wait(min(left, self.poll)):
                return

    def move_all(self, stop: threading.Event | None = None) -> int:
        """Move what is there now, and return how many jobs that were. What a queue does not take
        now stays: it is full, it refuses a job, or Redis cannot be reached; the log says why."""
        moved = 0
        while not (stop is not None and stop.is_set()):
            now = time.monotonic()
            resting = [queue for queue, pace in self._paces.items() if pace.again > now]
            batches = self.store.take(self.batch, lambda name: self._pace(name).batch, resting)
            if not batches:
                return moved
            for batch in batches:
                moved += self._send(batch)
        return moved

    # -- batches -----------------------------------------------------------------------------------

    def _send(self, batch: Taken) -> int:
        """Store a batch and delete it from the outbox; how many jobs of it are in the queue."""
        if not batch.jobs:  # another relay was faster
            return 0
        pace = self._pace(batch.queue)
        store = NumberedBatches(self.queue(batch.queue), batch.source)
        try:
            accepted = store.store(batch.number, batch.aged_puts)
        except ServerError as error:
            self._rest(batch, error)
            return 0
        except RQueueError as error:
            self._refused(batch, error)
            return 0
        self.store.delete(batch)
        try:
            store.forget_before(batch.number + 1)
        except ServerError:
            log.debug("outbox: batch %d of queue '%s' stays noted", batch.number, batch.queue)
        pace.batch, pace.failures = min(self.batch, 2 * pace.batch), 0
        moved = len(batch.jobs)
        if accepted is not None:
            log.debug(
                "outbox: %d of %d jobs are new to '%s'", accepted.accepted, moved, batch.queue
            )
        if self.on_moved is not None:
            self.on_moved(moved)
        return moved

    def _rest(self, batch: Taken, error: RQueueError) -> None:
        """Send the batch again later, under its number."""
        pace = self._pace(batch.queue)
        pace.failures += 1
        pace.again = time.monotonic() + backoff(pace.failures)
        level = logging.WARNING if pace.failures == 1 else logging.DEBUG
        log.log(level, "outbox: %s; it is sent again and again", _line(error))

    def _refused(self, batch: Taken, error: RQueueError) -> None:
        """The queue stored nothing of a batch. Where it has room for less, less is sent; a full one
        is waited for. Otherwise smaller batches find the job that is refused, which is put aside,
        and keeps the others from nothing."""
        pace, count, problem = self._pace(batch.queue), len(batch.jobs), None
        pace.batch = max(1, count // 2)
        if isinstance(error, QueueFull):
            if not error.room:
                self._rest(batch, error)
                return
            pace.batch = min(error.room, pace.batch)
        elif count == 1:
            problem, job = _line(error), batch.jobs[0].id
            log.error("outbox: queue '%s' refuses job '%s': %s", batch.queue, job, problem)
        self.store.release(batch, problem)

    def _pace(self, queue: str) -> _Pace:
        return self._paces.setdefault(queue, _Pace(self.batch))

    # -- what is done ------------------------------------------------------------------------------

    def clean(self) -> int:
        """Forget what was done once in jobs that have ended longer than `keep` ago; how many those
        were."""
        gone, last = 0, ("", "")
        while found := self.store.done_before(round(self.keep * 1000), last, CLEANED):
            for queue, id_ in found:
                if self.queue(queue).job(id_).state() not in _MAY_RUN:
                    self.store.forget(queue, id_)
                    gone += 1
            last = found[-1]
        return gone


def problem_of(error: BaseException, store: OutboxStore) -> str:
    """An error of the database in one line, and what makes its tables, where it has none."""
    line = _line(error)
    return f"{line} ({store.missing})" if _NO_TABLE.search(line) else line


def _line(error: BaseException) -> str:
    """An error in one line; the driver's own, where SQLAlchemy adds to it."""
    return " ".join(str(getattr(error, "orig", error)).split()) or type(error).__name__
