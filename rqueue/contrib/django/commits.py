"""Enqueues inside a transaction wait for its commit: a job never begins before its rows are there,
and a transaction that is rolled back leaves no job.

Django keeps what is to be done on commit in a list, and takes out what a savepoint that is rolled
back had put there. Enqueues of one savepoint that follow each other there are one entry, and so one
step for each queue.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.workflows import AsyncWorkflowHandle
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.client.default_queues import aqueue, queue
from rqueue.client.held_enqueues import HeldEnqueues
from rqueue.client.held_workflows import HeldWorkflow
from rqueue.contrib.django.conf import conf
from rqueue.contrib.outbox.workflows import refused_stream
from rqueue.tasks.enqueuer import DEFAULTS, MadeEnqueuers
from rqueue.tasks.options import Options
from rqueue.tasks.request import JobRequest
from rqueue.tasks.stream import Stream
from rqueue.tasks.workflow import Workflow

__all__ = [
    "AsyncCommitQueue",
    "CommitQueue",
    "CommitSends",
    "install",
    "outbox_for",
    "sends_on_commit",
    "write_to_outbox",
]

R = TypeVar("R")


class CommitSends:
    """What is enqueued when a transaction, or the savepoint in which it was added, is committed."""

    def __init__(self, savepoints: tuple[Any, ...]) -> None:
        self.savepoints = savepoints
        self.sent = False
        self._held: list[HeldEnqueues | HeldWorkflow[Any]] = []

    def into(self, target: Queue) -> HeldEnqueues:
        """Where the next job goes that is enqueued in `target`."""
        last = self._held[-1] if self._held else None
        if not isinstance(last, HeldEnqueues) or last.queue is not target:
            last = HeldEnqueues(target, self)
            self._held.append(last)
        return last

    def add(self, workflow: HeldWorkflow[Any]) -> None:
        """The workflow goes behind what is here."""
        self._held.append(workflow)

    def __call__(self) -> None:
        """Send them, in order. One queue that fails keeps the others from nothing; its error, the
        first one's, is raised in the end."""
        self.sent = True
        problem: Exception | None = None
        for held in self._held:
            try:
                held.send()
            except Exception as error:
                problem = problem or error
        self._held = []
        if problem is not None:
            raise problem


def waits_for(options: Options) -> str:
    """The alias of the database whose commit a job with these options waits for; "" for none.
    Raises ConfigError."""
    wanted = options.on_commit
    if wanted is None:
        return conf().on_commit
    return wanted if isinstance(wanted, str) else DEFAULT_DB_ALIAS if wanted else ""


def sends_on_commit(options: Options) -> CommitSends | None:
    """Where a job with these options is held until a commit; None where it is sent at once: there
    is no transaction, or it is not to wait for it. Raises ConfigError."""
    alias = waits_for(options)
    connection = transaction.get_connection(alias) if alias else None
    if connection is None:
        return None
    if not connection.in_atomic_block:
        return None
    savepoints = tuple(connection.savepoint_ids)
    last = connection.run_on_commit[-1][1] if connection.run_on_commit else None
    if (
        isinstance(last, CommitSends)
        and last.savepoints == savepoints
        and not last.sent
        and not _of_a_test_case(connection)
    ):
        return last
    sends = CommitSends(savepoints)
    connection.on_commit(sends)
    return sends


def outbox_for(options: Options) -> str:
    """The alias of the database into whose outbox a job with these options goes: the project has
    one, and a transaction is open that it waits for; else "". In a TestCase nothing is committed,
    and who captures callbacks is to find them there. Raises ConfigError."""
    alias = waits_for(options)
    if not alias or not conf().outbox:
        return ""
    connection = transaction.get_connection(alias)
    return alias if connection.in_atomic_block and not _of_a_test_case(connection) else ""


def write_to_outbox(request: JobRequest, goes_to: Queue, alias: str) -> JobHandle[Any]:
    """Write one job into a transaction. Raises NotEncodable, InvalidName, ConfigError."""
    from rqueue.contrib.django.outbox.jobs import write  # late: models need the apps to be there

    return write(request, goes_to, alias)


def write_workflow_to_outbox(
    workflow: Workflow[R] | Stream[R], goes_to: Queue, id: str | None, alias: str, spread: bool
) -> WorkflowHandle[R]:
    """Write all jobs of a workflow into a transaction. Raises what `Queue.enqueue_workflow` raises
    of its calls."""
    from rqueue.contrib.django.outbox.jobs import write_workflow  # late, as above

    return write_workflow(workflow, goes_to, id, alias, spread=spread)


def _options_of(workflow: Workflow[Any] | Stream[Any]) -> Options:
    """Those of its last call, which say what it waits for. Raises ConfigError for a stream that
    would wait for a commit; the transaction that a TestCase puts around its tests is none."""
    options = workflow.ends()[0].task.defaults
    if not isinstance(workflow, Stream):
        return options
    if alias := waits_for(options):
        blocks = transaction.get_connection(alias).atomic_blocks
        if blocks and not getattr(blocks[-1], "_from_testcase", False):
            raise refused_stream(
                "enqueue it in transaction.on_commit(...), or with on_commit=False in the options"
                " of its callback"
            )
    return replace(options, on_commit=False)


def _of_a_test_case(connection: BaseDatabaseWrapper) -> bool:
    """Whether a TestCase has wrapped the test in a transaction: nothing is committed in it, and who
    captures callbacks is to find one for each enqueue."""
    return any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


class CommitQueue:
    """A queue that tasks enqueue in (`rqueue.tasks.enqueuer.Enqueuer`)."""

    def __init__(self, name: str) -> None:
        self.target = name

    def enqueue_request(self, request: JobRequest) -> JobHandle[Any]:
        """Store one job, or hold it until the transaction is committed."""
        goes_to = queue(request.queue or self.target)
        if alias := outbox_for(request.options):
            return write_to_outbox(request, goes_to, alias)
        sends = sends_on_commit(request.options)
        if sends is None:
            return goes_to.enqueue_request(request)
        return sends.into(goes_to).add(request)

    def enqueue_workflow(
        self, workflow: Workflow[R] | Stream[R], *, id: str | None = None, spread: bool = False
    ) -> WorkflowHandle[R]:
        """Store the jobs of a workflow, or hold them until the transaction is committed."""
        goes_to, options = queue(self.target), _options_of(workflow)
        if alias := outbox_for(options):
            return write_workflow_to_outbox(workflow, goes_to, id, alias, spread)
        sends = sends_on_commit(options)
        if sends is None or isinstance(workflow, Stream):
            return goes_to.enqueue_workflow(workflow, id=id, spread=spread)
        held = HeldWorkflow(goes_to, workflow, id, spread=spread, sender=sends)
        sends.add(held)
        return held.handle


class AsyncHeldHandle(AsyncJobHandle[Any]):
    """The handle of a job that may be held back, for asyncio; `created` is None until then."""

    __slots__ = ("held",)
    held: HeldEnqueues | None

    async def result(self, timeout: float | None = None) -> Any:
        """Wait for the result, as `AsyncJobHandle.result`. Raises LifecycleError while the job is
        not sent."""
        if self.held is not None:
            self.held.require_sent(self)
        return await super().result(timeout)


class AsyncCommitQueue:
    """The same for asyncio. Async code has a transaction around it where it runs inside of
    `async_to_sync`: in the thread that waits for it, where `sync_to_async` comes to."""

    def __init__(self, name: str) -> None:
        self.target = name

    async def enqueue_request(self, request: JobRequest) -> AsyncJobHandle[Any]:
        """Store one job, or hold it until the transaction is committed."""
        goes_to: AsyncQueue = aqueue(request.queue or self.target)
        if not waits_for(request.options):
            return await goes_to.enqueue_request(request)
        handle = AsyncHeldHandle(goes_to, "", created=None)
        handle.held = None

        def hold() -> bool:
            if alias := outbox_for(request.options):
                handle.id = write_to_outbox(request, queue(goes_to.name), alias).id
                return True
            sends = sends_on_commit(request.options)
            if sends is not None:
                handle.held = sends.into(queue(goes_to.name))
                handle.held.add_for(request, handle)
            return sends is not None

        if await sync_to_async(hold, thread_sensitive=True)():
            return handle
        return await goes_to.enqueue_request(request)

    async def enqueue_workflow(
        self, workflow: Workflow[R] | Stream[R], *, id: str | None = None, spread: bool = False
    ) -> AsyncWorkflowHandle[R]:
        """Store the jobs of a workflow, or hold them until the transaction is committed."""
        goes_to = aqueue(self.target)

        def hold() -> AsyncWorkflowHandle[R] | None:
            its, options = queue(goes_to.name), _options_of(workflow)
            if alias := outbox_for(options):
                made = write_workflow_to_outbox(workflow, its, id, alias, spread)
                return AsyncWorkflowHandle(goes_to, made.id, made.ids, made._ends, made.queues)
            sends = sends_on_commit(options)
            if sends is None or isinstance(workflow, Stream):
                return None
            held = HeldWorkflow(its, workflow, id, spread=spread, sender=sends)
            sends.add(held)
            return held.handle_for(goes_to)

        handle = await sync_to_async(hold, thread_sensitive=True)()
        if handle is not None:
            return handle
        return await goes_to.enqueue_workflow(workflow, id=id, spread=spread)


def install() -> None:
    """From now on, tasks of this process enqueue so."""
    DEFAULTS.enqueuers, DEFAULTS.async_enqueuer = MadeEnqueuers(CommitQueue), AsyncCommitQueue
