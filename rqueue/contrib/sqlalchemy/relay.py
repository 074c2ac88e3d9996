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
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Engine, Row, delete, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from rqueue.client.numbered_batches import NumberedBatches
from rqueue.contrib.sqlalchemy.outbox import NOTICE, Outbox, require_known
from rqueue.contrib.sqlalchemy.tables import now_ms
from rqueue.errors import QueueFull, RQueueError, ServerError
from rqueue.logs import logger
from rqueue.model.job import JobState
from rqueue.model.terms import Terms
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.put_buffer import backoff

__all__ = ["BATCH", "Relay"]

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
LEADER = 0x7271756575  # "rqueue"; of PostgreSQL's advisory locks


@dataclass(slots=True)
class _Pace:
    """How a queue is sent to: `batch` jobs at a time, not before `again` (monotonic). Halved where
    it refuses, to find the job that it refuses; doubled where it accepts."""

    batch: int
    again: float = 0.0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch that has its number."""

    queue: str
    source: str
    number: int
    rows: Sequence[Row[Any]]
    now_ms: int

    @property
    def puts(self) -> list[Put]:
        """Its jobs; what of a delay has passed since they were written is taken off."""
        return [self._put(row) for row in self.rows]

    def _put(self, row: Row[Any]) -> Put:
        terms = Terms.parse(row.terms)
        if terms.delay_ms:
            left = max(0, terms.delay_ms - max(0, self.now_ms - row.enqueued_ms))
            terms = terms._replace(delay_ms=left)
        return Put.of_terms(row.job_id, bytes(row.envelope), terms.text)


@dataclass(slots=True)
class Relay:
    """Moves the jobs of one outbox.

    engine: of its database. batch: jobs that go into a queue in one step, 1000 at most. poll:
    seconds between two looks where nothing tells that there are jobs: every database but
    PostgreSQL with psycopg. keep: seconds for which `run_once` remembers what was done, at the
    least; for a job that has not ended, always.
    """

    engine: Engine
    outbox: Outbox = field(default_factory=Outbox)
    batch: int = BATCH
    poll: float = POLL_S
    keep: float = KEEP_S
    on_moved: Callable[[int], object] | None = None
    _paces: dict[str, _Pace] = field(default_factory=dict)
    _clean_at: float = 0.0

    def __post_init__(self) -> None:
        require_known(self.engine.dialect.name)

    # -- run ---------------------------------------------------------------------------------------

    def run(self, stop: threading.Event) -> None:
        """Move jobs until `stop` is set. Goes on while Redis or the database cannot be reached,
        with a warning in the log."""
        driver: Any = self.engine.dialect.loaded_dbapi
        failures = 0
        while not stop.is_set():
            try:
                with self.engine.connect() as bell:
                    try:
                        if self._leads(bell, stop):
                            failures = 0
                            self._run(bell, stop)
                    finally:
                        bell.invalidate()  # its session ends, with the lock and the LISTEN
            except (SQLAlchemyError, RQueueError, driver.Error) as error:
                failures += 1
                level = logging.WARNING if failures == 1 else logging.DEBUG
                log.log(level, "outbox: %s; it is tried again and again", _line(error))
                stop.wait(backoff(failures))

    def _run(self, bell: Connection, stop: threading.Event) -> None:
        listens = self._listen(bell)
        while not stop.is_set():
            moved = self.move_all(stop)
            if time.monotonic() >= self._clean_at:
                self.clean()
                self._clean_at = time.monotonic() + CLEAN_S
            if not moved:
                self._wait(bell if listens else None, stop)

    def move_all(self, stop: threading.Event | None = None) -> int:
        """Move what is there now, and return how many jobs that were. What a queue does not take
        now stays: it is full, it refuses a job, or Redis cannot be reached; the log says why."""
        moved = 0
        while not (stop is not None and stop.is_set()):
            batches = self._take()
            if not batches:
                return moved
            for batch in batches:
                moved += self._send(batch)
        return moved

    # -- batches -----------------------------------------------------------------------------------

    def _take(self) -> list[Taken]:
        """Give numbers to the oldest jobs: at most one batch of each queue. What has a number from
        before comes first."""
        outbox, now = self.outbox.tables.outbox, time.monotonic()
        resting = [queue for queue, pace in self._paces.items() if pace.again > now]
        open_ = outbox.c.problem.is_(None) & outbox.c.queue.not_in(resting)
        with self.engine.begin() as connection:
            sent = select(outbox.c.queue).where(open_ & outbox.c.batch.is_not(None)).distinct()
            queues = list(connection.execute(sent).scalars())
            fresh = (
                select(outbox.c.seq, outbox.c.queue)
                .where(open_ & outbox.c.batch.is_(None) & outbox.c.queue.not_in(queues))
                .order_by(outbox.c.seq)
                .limit(self.batch)
            )
            groups: dict[str, list[int]] = {}
            for seq, queue in connection.execute(fresh):
                groups.setdefault(queue, []).append(seq)
            for queue, numbers in groups.items():
                self._number(connection, queue, numbers[: self._pace(queue).batch])
            return [self._batch(connection, queue) for queue in (*queues, *groups)]

    def _number(self, connection: Connection, queue: str, seqs: list[int]) -> None:
        """Give the next number of a queue to these jobs."""
        outbox, batches = self.outbox.tables.outbox, self.outbox.tables.batches
        this = batches.c.queue == queue
        next_ = update(batches).where(this).values(number=batches.c.number + 1)
        if connection.execute(next_).rowcount == 0:
            first = {"queue": queue, "source": uuid4().hex, "number": 1}
            connection.execute(insert(batches).values(first))
        number = select(batches.c.number).where(this).scalar_subquery()
        those = update(outbox).where(outbox.c.seq.in_(seqs))
        connection.execute(those.values(batch=number))

    def _batch(self, connection: Connection, queue: str) -> Taken:
        outbox, batches = self.outbox.tables.outbox, self.outbox.tables.batches
        its = select(batches.c.source, batches.c.number, now_ms())
        source, number, now = connection.execute(its.where(batches.c.queue == queue)).one()
        mine = (outbox.c.queue == queue) & (outbox.c.batch == number)
        rows = connection.execute(select(outbox).where(mine).order_by(outbox.c.seq)).all()
        return Taken(queue, source, number, rows, now)

    def _send(self, batch: Taken) -> int:
        """Store a batch and delete it from the outbox; how many jobs of it are in the queue."""
        if not batch.rows:  # another relay was faster
            return 0
        pace = self._pace(batch.queue)
        store = NumberedBatches(self.outbox.queue(batch.queue), batch.source)
        try:
            accepted = store.store(batch.number, batch.puts)
        except ServerError as error:
            self._rest(batch, error)
            return 0
        except RQueueError as error:
            self._refused(batch, error)
            return 0
        self._delete(batch)
        try:
            store.forget_before(batch.number + 1)
        except ServerError:
            log.debug("outbox: batch %d of queue '%s' stays noted", batch.number, batch.queue)
        pace.batch, pace.failures = min(self.batch, 2 * pace.batch), 0
        moved = len(batch.rows)
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
        outbox, pace, count = self.outbox.tables.outbox, self._pace(batch.queue), len(batch.rows)
        values: dict[str, Any] = {"batch": None}
        pace.batch = max(1, count // 2)
        if isinstance(error, QueueFull):
            if not error.room:
                self._rest(batch, error)
                return
            pace.batch = min(error.room, pace.batch)
        elif count == 1:
            values["problem"] = _line(error)
            job = batch.rows[0].job_id
            log.error("outbox: queue '%s' refuses job '%s': %s", batch.queue, job, _line(error))
        with self.engine.begin() as connection:
            connection.execute(update(outbox).where(self._rows(batch)).values(values))

    def _delete(self, batch: Taken) -> None:
        with self.engine.begin() as connection:
            connection.execute(delete(self.outbox.tables.outbox).where(self._rows(batch)))

    def _rows(self, batch: Taken) -> Any:
        outbox = self.outbox.tables.outbox
        return (outbox.c.queue == batch.queue) & (outbox.c.batch == batch.number)

    def _pace(self, queue: str) -> _Pace:
        return self._paces.setdefault(queue, _Pace(self.batch))

    # -- what is done ------------------------------------------------------------------------------

    def clean(self) -> int:
        """Forget what `run_once` has noted of jobs that have ended longer than `keep` ago; how many
        those were."""
        done, gone, last = self.outbox.tables.done, 0, ("", "")
        with self.engine.connect() as connection:
            oldest = connection.execute(select(now_ms())).scalar_one() - round(self.keep * 1000)
        while True:
            old = (
                select(done.c.queue, done.c.job_id)
                .where(done.c.finished_ms < oldest)
                .where(_after(done, last))
                .order_by(done.c.queue, done.c.job_id)
                .limit(CLEANED)
            )
            with self.engine.begin() as connection:
                found = [(queue, id_) for queue, id_ in connection.execute(old)]
                for queue, id_ in found:
                    if self.outbox.queue(queue).job(id_).state() in _MAY_RUN:
                        continue
                    this = (done.c.queue == queue) & (done.c.job_id == id_)
                    gone += connection.execute(delete(done).where(this)).rowcount
            if len(found) < CLEANED:
                return gone
            last = found[-1]

    # -- waiting -----------------------------------------------------------------------------------

    def _leads(self, bell: Connection, stop: threading.Event) -> bool:
        """Wait until no other relay moves these jobs; False where it was stopped before."""
        if self.engine.dialect.name != "postgresql":
            return True
        said = False
        while not stop.is_set():
            if bell.execute(select(func.pg_try_advisory_lock(LEADER))).scalar_one():
                bell.commit()
                return True
            bell.commit()
            if not said:
                log.info("outbox: another relay moves its jobs; this one stands by")
                said = True
            stop.wait(self.poll)
        return False

    def _listen(self, bell: Connection) -> bool:
        """Whether the database tells of new jobs by itself."""
        if (self.engine.dialect.name, self.engine.dialect.driver) != ("postgresql", "psycopg"):
            return False
        bell.execute(text(f"LISTEN {NOTICE}"))
        bell.commit()
        return True

    def _wait(self, bell: Connection | None, stop: threading.Event) -> None:
        """Until there may be something to do."""
        now = time.monotonic()
        rests = [pace.again - now for pace in self._paces.values() if pace.again > now]
        if bell is None:
            stop.wait(min([self.poll, *rests]))
            return
        end = now + min([LISTEN_S, *rests])
        driver: Any = bell.connection.driver_connection
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            for _ in driver.notifies(timeout=min(left, self.poll), stop_after=1):
                return


_MAY_RUN = frozenset(
    state
    for state in JobState
    if state is JobState.DEAD or not (state.ended or state is JobState.UNKNOWN)
)
"""A dead letter may be requeued."""


def _after(done: Any, last: tuple[str, str]) -> Any:
    queue, id_ = last
    return (done.c.queue > queue) | ((done.c.queue == queue) & (done.c.job_id > id_))


def _line(error: BaseException) -> str:
    """An error in one line, without what SQLAlchemy adds to the driver's."""
    said = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(said.split()) or type(error).__name__
