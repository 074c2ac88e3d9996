"""The statements of the relay, through SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    Connection,
    Engine,
    Select,
    delete,
    func,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from rqueue.contrib.outbox.store import (
    LEADER,
    NOTICE,
    Counts,
    Held,
    Taken,
    Written,
    require_database,
)
from rqueue.contrib.outbox.workflows import Fresh, Unsent, sendable
from rqueue.contrib.sqlalchemy.tables import OutboxTables, now_ms

__all__ = ["EngineStore"]

INSERTS: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


@dataclass(slots=True)
class EngineBell:
    """A connection that lasts (`rqueue.contrib.outbox.store.Bell`)."""

    connection: Connection

    @property
    def listens(self) -> bool:
        """PostgreSQL tells, and psycopg hears it."""
        dialect = self.connection.dialect
        return (dialect.name, dialect.driver) == ("postgresql", "psycopg")

    def leads(self) -> bool:
        """Where it leads it hears of jobs from now on."""
        if self.connection.dialect.name != "postgresql":
            return True
        found = self.connection.execute(select(func.pg_try_advisory_lock(LEADER))).scalar_one()
        if found and self.listens:
            self.connection.execute(text(f"LISTEN {NOTICE}"))
        self.connection.commit()
        return bool(found)

    def wait(self, seconds: float) -> bool:
        """Wait for a notice."""
        driver: Any = self.connection.connection.driver_connection
        return any(True for _ in driver.notifies(timeout=seconds, stop_after=1))


@dataclass(frozen=True, slots=True)
class EngineStore:
    """An outbox in the database of an engine (`rqueue.contrib.outbox.OutboxStore`)."""

    engine: Engine
    tables: OutboxTables

    def __post_init__(self) -> None:
        require_database(self.engine.dialect.name)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """SQLAlchemy's, and the driver's own: it waits by itself."""
        driver: Any = self.engine.dialect.loaded_dbapi
        return SQLAlchemyError, driver.Error

    @property
    def missing(self) -> str:
        """What to do where the database has no tables of an outbox."""
        return (
            "run the migration that makes the outbox's tables, or 'python -m"
            " rqueue.contrib.sqlalchemy tables DATABASE --create'"
        )

    @contextmanager
    def bell(self) -> Iterator[EngineBell]:
        """A connection; its session ends with it, and so do lock and LISTEN."""
        with self.engine.connect() as connection:
            try:
                yield EngineBell(connection)
            finally:
                connection.invalidate()

    # -- batches -----------------------------------------------------------------------------------

    def take(self, limit: int, most: Callable[[str], int], not_of: Collection[str]) -> list[Taken]:
        """Give numbers to the oldest jobs."""
        outbox = self.tables.outbox
        open_ = outbox.c.problem.is_(None) & outbox.c.queue.not_in(not_of)
        with self.engine.begin() as connection:
            sent = select(outbox.c.queue).where(open_ & outbox.c.batch.is_not(None)).distinct()
            queues = list(connection.execute(sent).scalars())
            columns = (outbox.c.seq, outbox.c.queue, outbox.c.job_id, outbox.c.terms)
            fresh = select(*columns).where(open_ & outbox.c.batch.is_(None))
            fresh = fresh.order_by(outbox.c.seq).limit(limit)
            ready = self._ready(connection, fresh, queues)
            for queue, seqs in ready.items():
                self._number(connection, queue, seqs[: most(queue)])
            return [self._batch(connection, queue) for queue in (*queues, *ready)]

    def _ready(
        self, connection: Connection, fresh: Select[Any], sent: Sequence[str]
    ) -> dict[str, list[int]]:
        """Of each queue the places of the oldest jobs that may be sent now. sent: queues of which
        others are under way."""
        outbox, kept = self.tables.outbox, {*sent}

        def unsent(ids: Collection[str]) -> list[Unsent]:
            columns = (outbox.c.queue, outbox.c.job_id, outbox.c.problem.is_not(None))
            found = connection.execute(select(*columns).where(outbox.c.job_id.in_(ids)))
            return [Unsent(*row) for row in found]

        while True:
            rows = connection.execute(fresh.where(outbox.c.queue.not_in(kept)))
            found = sendable([Fresh(*row) for row in rows], unsent)
            for seq, problem in found.refused.items():
                this = update(outbox).where(outbox.c.seq == seq)
                connection.execute(this.values(problem=problem))
            if found.ready or not (found.kept or found.refused):
                return found.ready
            kept |= found.kept

    def _number(self, connection: Connection, queue: str, seqs: list[int]) -> None:
        """Give the next number of a queue to these jobs."""
        outbox, batches = self.tables.outbox, self.tables.batches
        this = batches.c.queue == queue
        next_ = update(batches).where(this).values(number=batches.c.number + 1)
        if connection.execute(next_).rowcount == 0:
            # another relay may be here for the first time too
            insert = INSERTS[connection.dialect.name](batches).on_conflict_do_nothing()
            connection.execute(insert.values(queue=queue, source=uuid4().hex, number=0))
            connection.execute(next_)
        number = select(batches.c.number).where(this).scalar_subquery()
        those = update(outbox).where(outbox.c.seq.in_(seqs) & outbox.c.batch.is_(None))
        connection.execute(those.values(batch=number))

    def _batch(self, connection: Connection, queue: str) -> Taken:
        outbox, batches = self.tables.outbox, self.tables.batches
        its = select(batches.c.source, batches.c.number, now_ms())
        source, number, now = connection.execute(its.where(batches.c.queue == queue)).one()
        columns = (outbox.c.job_id, outbox.c.terms, outbox.c.envelope, outbox.c.enqueued_ms)
        mine = (outbox.c.queue == queue) & (outbox.c.batch == number)
        rows = connection.execute(select(*columns).where(mine).order_by(outbox.c.seq))
        return Taken(queue, source, number, [Written(*row) for row in rows], now)

    def delete(self, batch: Taken) -> None:
        """Delete the jobs of a batch."""
        with self.engine.begin() as connection:
            connection.execute(delete(self.tables.outbox).where(self._of(batch)))

    def release(self, batch: Taken, problem: str | None) -> None:
        """Take the number from the jobs of a batch."""
        change = update(self.tables.outbox).where(self._of(batch))
        with self.engine.begin() as connection:
            connection.execute(change.values(batch=None, problem=problem))

    def _of(self, batch: Taken) -> Any:
        outbox = self.tables.outbox
        return (outbox.c.queue == batch.queue) & (outbox.c.batch == batch.number)

    # -- what is done ------------------------------------------------------------------------------

    def done_before(self, age_ms: int, after: tuple[str, str], limit: int) -> list[tuple[str, str]]:
        """Jobs whose effects happened long ago."""
        done = self.tables.done
        key = tuple_(done.c.queue, done.c.job_id)
        old = select(done.c.queue, done.c.job_id).where(done.c.finished_ms < now_ms() - age_ms)
        with self.engine.connect() as connection:
            found = connection.execute(old.where(key > after).order_by(*key.clauses).limit(limit))
            return [(queue, id_) for queue, id_ in found]

    def forget(self, queue: str, id: str) -> None:
        """Forget the effects of a job."""
        done = self.tables.done
        this = (done.c.queue == queue) & (done.c.job_id == id)
        with self.engine.begin() as connection:
            connection.execute(delete(done).where(this))

    # -- people ------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """What is in the outbox."""
        outbox = self.tables.outbox
        counts = select(outbox.c.queue, func.count()).where(outbox.c.problem.is_(None))
        refused = select(outbox.c.queue, outbox.c.job_id, outbox.c.problem)
        refused = refused.where(outbox.c.problem.is_not(None)).order_by(outbox.c.seq)
        with self.engine.connect() as connection:
            by_queue = counts.group_by(outbox.c.queue).order_by(outbox.c.queue)
            waiting = [(queue, count) for queue, count in connection.execute(by_queue)]
            return Counts(waiting, [Held(*row) for row in connection.execute(refused)])

    def retry(self, ids: Sequence[str], *, drop: bool) -> int:
        """Let refused jobs be sent again, or delete them."""
        outbox = self.tables.outbox
        these = [outbox.c.problem.is_not(None)]
        if ids:
            these.append(outbox.c.job_id.in_(ids))
        statement = delete(outbox) if drop else update(outbox).values(problem=None)
        with self.engine.begin() as connection:
            return connection.execute(statement.where(*these)).rowcount
