"""What an application asks of its outbox, inside a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.client.held_enqueues import require_patient
from rqueue.contrib.django.conf import conf
from rqueue.contrib.django.outbox.clock import NowMs
from rqueue.contrib.django.outbox.models import DoneJob, OutboxJob
from rqueue.contrib.outbox.store import NOTICE, NOW_MS, require_database
from rqueue.contrib.outbox.workflows import written_workflow
from rqueue.errors import LifecycleError
from rqueue.model.envelope import decode_result, encode_result
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.job_packer import as_put
from rqueue.tasks.context import current_job
from rqueue.tasks.request import JobRequest
from rqueue.tasks.stream import Stream
from rqueue.tasks.workflow import Workflow

__all__ = ["database", "run_once", "waits", "write", "write_workflow"]

P = ParamSpec("P")
R = TypeVar("R")


def database() -> str:
    """The alias of the database that has the outbox: the one whose commits enqueues wait for."""
    return conf().on_commit or DEFAULT_DB_ALIAS


def write(request: JobRequest, queue: Queue, alias: str) -> JobHandle[Any]:
    """Write one job into the transaction. Raises NotEncodable, InvalidName, and ConfigError for one
    that is to be refused at once."""
    connection = connections[alias]
    require_database(connection.vendor)
    require_patient(request.options, "pass on_commit=False")
    id_, envelope, _, options = queue._packer.pack(request)
    _insert(connection, [(queue.name, as_put(id_, envelope, options))])
    return JobHandle(queue, id_, created=None)


def write_workflow(
    workflow: Workflow[R] | Stream[R], queue: Queue, id: str | None, alias: str, *, spread: bool
) -> WorkflowHandle[R]:
    """Write all jobs of a workflow into the transaction, those that wait first: the queues get them
    in that order. Raises what `Queue.enqueue_workflow` raises of its calls."""
    connection = connections[alias]
    require_database(connection.vendor)
    rows, handle = written_workflow(queue, workflow, id, spread=spread)
    _insert(connection, rows)
    return handle


def _insert(connection: BaseDatabaseWrapper, rows: Sequence[tuple[str, Put]]) -> None:
    OutboxJob.objects.using(connection.alias).bulk_create(
        [
            OutboxJob(
                queue=queue,
                job_id=put.id,
                terms=put.terms,
                envelope=put.envelope,
                enqueued_ms=NowMs(),
            )
            for queue, put in rows
        ],
        batch_size=500,
    )
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {NOTICE}")


def waits(id: str, queue: str = "default") -> bool:
    """Whether a job of that queue is in the outbox, to be sent by the relay, or refused. Its queue
    does not know it before it is sent; where this answers False it does, or the job was never
    committed."""
    return bool(OutboxJob.objects.using(database()).filter(queue=queue, job_id=id).exists())


def run_once(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call `function` unless an earlier attempt of the running job has done it in a transaction
    that was committed; then return what it returned, in its JSON form.

    That it is done is written into the transaction around it: what `function` changes in this
    database happens exactly once, whatever becomes of the worker and however often the job is
    delivered. Two workers that believe to have the job at once wait for each other here. Everything
    else that it does (mails, calls of other services) happens at least once.

    Call it once in a job, inside of `transaction.atomic()`, before other statements. Raises
    LifecycleError where no job runs or no transaction is open, NotEncodable for a result that is
    not JSON, and what `function` and the database raise: then nothing of it is done.
    """
    job, alias = current_job(), database()
    if job is None:
        raise LifecycleError("no job runs here: call run_once inside of a task")
    connection = connections[alias]
    require_database(connection.vendor)
    if not connection.in_atomic_block:
        raise LifecycleError("no transaction is open: call run_once inside of transaction.atomic()")
    done = DoneJob.objects.using(alias).filter(queue=job.queue, job_id=job.id)
    table = connection.ops.quote_name(DoneJob._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (queue, job_id, finished_ms)"
            f" VALUES (%s, %s, {NOW_MS[connection.vendor]}) ON CONFLICT DO NOTHING",
            [job.queue, job.id],
        )
        mine = cursor.rowcount == 1
    if not mine:
        return cast("R", decode_result(bytes(done.get().result or b"")))
    try:
        value = function(*args, **kwargs)
        done.update(result=encode_result(value, job.task), finished_ms=NowMs())
    except BaseException:
        # also where the caller catches the error and commits all the same; a transaction that is
        # broken can only be rolled back, with what was written here
        with suppress(DatabaseError):
            done.delete()
        raise
    return value
