"""What an application asks of its outbox, inside a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

from sqlalchemy import Connection, Engine, MetaData, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, scoped_session

from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.client.default_queues import queue as default_queue
from rqueue.client.held_enqueues import require_patient
from rqueue.contrib.outbox.relay import BATCH, KEEP_S, POLL_S, Relay
from rqueue.contrib.outbox.store import NOTICE, require_database
from rqueue.contrib.outbox.workflows import written_workflow
from rqueue.contrib.sqlalchemy.store import EngineStore
from rqueue.contrib.sqlalchemy.tables import OutboxTables, now_ms
from rqueue.errors import ConfigError, LifecycleError
from rqueue.model.envelope import decode_result, encode_result
from rqueue.model.expect import expect
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.job_packer import as_put
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.context import current_job
from rqueue.tasks.request import JobRequest
from rqueue.tasks.workflow import Workflow

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

__all__ = ["Outbox", "Transaction"]

P = ParamSpec("P")
R = TypeVar("R")

Transaction: TypeAlias = Session | scoped_session[Session] | Connection
"""What has a transaction that statements go into."""

WRITTEN = 500
"""Jobs of a workflow that one statement writes."""

_INSERTS: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class Outbox:
    """The outbox in one database.

    metadata: where its tables are added, so that Alembic, or `metadata.create_all`, makes them with
    the application's; None for one of its own, see `create_tables`. schema: of the tables. queue:
    gives the queue of a name; default: `rqueue.queue`, as RQUEUE_URL or `rqueue.configure` say.
    """

    def __init__(
        self,
        metadata: MetaData | None = None,
        *,
        schema: str | None = None,
        queue: Callable[[str], Queue] = default_queue,
    ) -> None:
        self.metadata = MetaData() if metadata is None else metadata
        self.tables = OutboxTables.of(self.metadata, schema)
        self.queue = queue

    def create_tables(self, engine: Engine | Connection) -> None:
        """Make the tables that are not there yet."""
        tables = self.tables
        self.metadata.create_all(engine, [tables.outbox, tables.batches, tables.done])

    def relay(
        self,
        engine: Engine,
        *,
        batch: int = BATCH,
        poll: float = POLL_S,
        keep: float = KEEP_S,
        on_moved: Callable[[int], object] | None = None,
    ) -> Relay:
        """What moves the jobs of this outbox; see `rqueue.contrib.outbox.Relay`."""
        store = EngineStore(engine, self.tables)
        return Relay(store, self.queue, batch, poll, keep, on_moved)

    # -- enqueue -----------------------------------------------------------------------------------

    def enqueue(
        self, transaction: Transaction, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[R]:
        """Enqueue a call of a task when the transaction is committed, and not at all where it is
        rolled back. What `task.options(...)` says holds; a delay counts from now, by the database's
        clock. The handle's `created` is None: it knows nothing of the job before the relay has
        moved it.

        Raises BadArguments, NotEncodable, InvalidName; ConfigError for a job that is to be refused
        at once (`immediate`, `on_conflict="raise"`); and what the database raises.
        """
        expect("task", task, BoundTask, "a task: outbox.enqueue(session, pay, 7)")
        return task.options(sender=OutboxSender(self, transaction)).enqueue(*args, **kwargs)

    async def aenqueue(
        self,
        transaction: AsyncSession | AsyncConnection,
        task: BoundTask[P, R],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> JobHandle[R]:
        """`enqueue` into a transaction of asyncio. The handle is one of threads: to wait for a
        result in asyncio ask `rqueue.aqueue(handle.queue).job(handle.id)`."""

        def enqueue(connection: Session | Connection) -> JobHandle[R]:
            return self.enqueue(connection, task, *args, **kwargs)

        return await _inside(transaction, enqueue)

    def enqueue_workflow(
        self, transaction: Transaction, workflow: Workflow[R], *, id: str | None = None
    ) -> WorkflowHandle[R]:
        """Enqueue the jobs of a workflow (`rqueue.chain`, `group`, `chord`), each into the queue of
        its task, when the transaction is committed, and none of them where it is rolled back. A job
        is sent when those are in their queues that wait for it. id: as of
        `Queue.enqueue_workflow`.

        Raises what that raises of the calls, ConfigError for a stream, and what the database
        raises.
        """
        task, spread = workflow._goes_to()
        sender = OutboxSender(self, transaction, task.queue)
        return sender.enqueue_workflow(workflow, id=id, spread=spread)

    async def aenqueue_workflow(
        self,
        transaction: AsyncSession | AsyncConnection,
        workflow: Workflow[R],
        *,
        id: str | None = None,
    ) -> WorkflowHandle[R]:
        """`enqueue_workflow` into a transaction of asyncio. The handle is one of threads."""

        def enqueue(connection: Session | Connection) -> WorkflowHandle[R]:
            return self.enqueue_workflow(connection, workflow, id=id)

        return await _inside(transaction, enqueue)

    def waits(self, transaction: Transaction, id: str, queue: str = "default") -> bool:
        """Whether a job of that queue is here, to be sent by the relay, or refused. Its queue does
        not know it before it is sent; where this answers False it does, or the job was never
        committed."""
        outbox = self.tables.outbox
        this = (outbox.c.queue == queue) & (outbox.c.job_id == id)
        return transaction.execute(select(outbox.c.seq).where(this).limit(1)).first() is not None

    async def awaits(
        self, transaction: AsyncSession | AsyncConnection, id: str, queue: str = "default"
    ) -> bool:
        """`waits` in a transaction of asyncio."""
        return await _inside(transaction, lambda connection: self.waits(connection, id, queue))

    # -- effects that happen once ------------------------------------------------------------------

    def run_once(
        self,
        transaction: Transaction,
        function: Callable[P, R],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Call `function` unless an earlier attempt of the running job has done it in a transaction
        that was committed; then return what it returned, in its JSON form.

        That it is done is written into the same transaction: what `function` changes in it happens
        exactly once, whatever becomes of the worker and however often the job is delivered. Two
        workers that believe to have the job at once wait for each other here. Everything else that
        it does (mails, calls of other services) happens at least once.

        Call it once in a job, before other statements of the transaction. Raises LifecycleError
        where no job runs, NotEncodable for a result that is not JSON, and what `function` and the
        database raise: then nothing of it is done.
        """
        job = current_job()
        if job is None:
            raise LifecycleError("no job runs here: call run_once inside of a task")
        done, own = self.tables.done, (job.queue, job.id)
        row = {"queue": job.queue, "job_id": job.id, "finished_ms": now_ms()}
        statement = _INSERTS[require_database(_dialect(transaction))](done).values(row)
        statement = statement.on_conflict_do_nothing().returning(done.c.job_id)
        this = (done.c.queue == own[0]) & (done.c.job_id == own[1])
        if transaction.execute(statement).first() is None:
            kept = transaction.execute(select(done.c.result).where(this)).scalar_one()
            return cast("R", decode_result(kept or b""))
        try:
            value = function(*args, **kwargs)
            result = encode_result(value, job.task)
            said = {"result": result, "finished_ms": now_ms()}
            transaction.execute(update(done).where(this).values(said))
        except BaseException:
            self._take_back(transaction, this)
            raise
        return value

    async def arun_once(
        self,
        transaction: AsyncSession | AsyncConnection,
        function: Callable[P, R],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """`run_once` in a transaction of asyncio. `function` is a plain one that gets the
        synchronous session (or connection) first, as SQLAlchemy's `run_sync` calls it."""

        def run(connection: Session | Connection) -> R:
            return self.run_once(connection, function, connection, *args, **kwargs)  # type: ignore[arg-type]

        return await _inside(transaction, run)

    def _take_back(self, transaction: Transaction, this: Any) -> None:
        """It is not done: also where the caller catches the error and commits all the same."""
        try:
            transaction.execute(delete(self.tables.done).where(this))
        except SQLAlchemyError:
            # the transaction is broken and can only be rolled back, with what was written here
            return


class OutboxSender:
    """Takes jobs of tasks into a transaction (`rqueue.tasks.enqueuer.Enqueuer`)."""

    target = ""

    def __init__(self, outbox: Outbox, transaction: Transaction, queue: str = "") -> None:
        self._outbox = outbox
        self._transaction = transaction
        self._queue = queue

    def enqueue_request(self, request: JobRequest) -> JobHandle[Any]:
        """Write one job."""
        require_database(_dialect(self._transaction))
        require_patient(request.options, "enqueue it without the outbox")
        queue = self._outbox.queue(request.queue)
        id_, envelope, _, options = queue._packer.pack(request)
        self._write([(queue.name, as_put(id_, envelope, options))])
        return JobHandle(queue, id_, created=None)

    def enqueue_workflow(
        self, workflow: Workflow[R], *, id: str | None = None, spread: bool = False
    ) -> WorkflowHandle[R]:
        """Write all jobs of a workflow."""
        require_database(_dialect(self._transaction))
        queue = self._outbox.queue(self._queue or workflow.ends()[0].task.queue)
        rows, handle = written_workflow(queue, workflow, id, spread=spread)
        for first in range(0, len(rows), WRITTEN):
            self._write(rows[first : first + WRITTEN])
        return handle

    def _write(self, rows: Sequence[tuple[str, Put]]) -> None:
        """Write jobs into the outbox, in their order."""
        values = [
            {
                "queue": queue,
                "job_id": put.id,
                "terms": put.terms,
                "envelope": put.envelope,
                "enqueued_ms": now_ms(),
            }
            for queue, put in rows
        ]
        self._transaction.execute(insert(self._outbox.tables.outbox).values(values))
        if _dialect(self._transaction) == "postgresql":
            self._transaction.execute(select(func.pg_notify(NOTICE, "")))


def _dialect(transaction: Transaction) -> str:
    if isinstance(transaction, Session | scoped_session):
        return transaction.get_bind().dialect.name
    if isinstance(transaction, Connection):
        return transaction.dialect.name
    raise not_a_transaction(transaction)


def not_a_transaction(given: object) -> ConfigError:
    """What is wrong with something that is no session and no connection."""
    if hasattr(given, "run_sync"):
        return ConfigError("transaction", "it is one of asyncio: await aenqueue or arun_once")
    return ConfigError("transaction", f"{given!r} is no Session and no Connection")


async def _inside(transaction: AsyncSession | AsyncConnection, call: Callable[[Any], R]) -> R:
    if not hasattr(transaction, "run_sync"):
        raise ConfigError("transaction", f"{transaction!r} is not one of asyncio")
    return await transaction.run_sync(call)
