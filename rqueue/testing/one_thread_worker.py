"""Runs jobs as a worker does, with all that a worker runs around them, in the thread that asks for
it: one job at a time, queue by queue, and nothing goes on behind the test's back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from rqueue.errors import ConfigError, RQueueError, UnknownTask
from rqueue.protocol import commands
from rqueue.protocol.commands.settle import Window
from rqueue.protocol.course import run_course
from rqueue.protocol.forwarding import forward_soon
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.scheduling import refill_soon
from rqueue.settings import Settings
from rqueue.tasks import app
from rqueue.tasks.context import JobContext, current
from rqueue.tasks.control import Control
from rqueue.tasks.middleware import WorkerInfo
from rqueue.tasks.registry import registry
from rqueue.transport.connection import Connection
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.app_import import AppError
from rqueue_workers.worker.attempt import Attempts, Decoded, Unfit
from rqueue_workers.worker.composing import Held
from rqueue_workers.worker.current_job import CurrentJob
from rqueue_workers.worker.outcome import Ack
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.services import Services
from rqueue_workers.worker.subscription import Subscription
from rqueue_workers.worker.task_plans import ASYNC, Plan, plan_of

__all__ = ["Drained", "OneThreadWorker", "Ran"]

T = TypeVar("T")
Steps = Generator[tuple[Coroutine[Any, Any, Any], Context], Any, T]
"""Work that stops where something is to be awaited, in a context, and goes on with its result."""

NAME = "test"
FOREVER_MS = 100 * 365 * 86_400_000
"""A lease that no test outlives, however far it moves the clock."""


@dataclass(frozen=True, slots=True)
class Ran:
    """An attempt that ran: of which job, and what became of it. outcome: done, retry, snooze,
    refuse, park or reject. error: what it raised, if it did."""

    id: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    queue: str
    attempt: int
    outcome: str
    result: Any = None
    error: BaseException | None = None

    @property
    def failed(self) -> bool:
        """Whether it raised. Who asks for another attempt (`Retry`), more time (`Snooze`) or the
        dead letters (`Reject`) has not failed."""
        return self.error is not None and not isinstance(self.error, Control)


@dataclass(slots=True)
class Drained:
    """What a drain did: the attempts that ran, in their order."""

    jobs: list[Ran] = field(default_factory=list)

    @property
    def ran(self) -> int:
        """How many there were."""
        return len(self.jobs)

    @property
    def failures(self) -> list[Ran]:
        """Those that failed."""
        return [one for one in self.jobs if one.failed]


class Plans(dict[str, Plan]):
    """The tasks that are registered, each composed when its first job comes."""

    def __init__(self, spec: WorkerSpec, held: Held) -> None:
        super().__init__()
        self._spec, self._held = spec, held

    def get(self, name: str, default: Any = None) -> Any:
        """The plan of a task that is registered, by its name."""
        found = super().get(name)
        task = registry.find(name)
        if task is None:
            return default
        if found is None:
            found = self[name] = plan_of(task, self._spec, self._held)
        return found


class TestAttempts(Attempts):
    """Attempts by the harness's clock: it may be years from this machine's."""

    __test__ = False  # no test of pytest's, whatever its name

    def trusted_ms(self, at_ms: int) -> int:
        """The time by which a signature is judged."""
        return at_ms


class OneThreadWorker:
    """A worker of tests. Not thread-safe: who asks for jobs to be run takes turns."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._spec = WorkerSpec(settings=settings, app=(), queues=())
        self.settings = settings
        self._held: Held = {}
        self._plans = Plans(self._spec, self._held)
        self._middleware: tuple[Any, ...] = ()
        self._attempts = self._made()
        self._slot = CurrentJob(NAME)
        self._services: Services | None = None
        self._declaring: dict[QueueKeys, Subscription] = {}
        self._serving: dict[QueueKeys, Subscription] = {}
        self._page = StatusPage(1)
        self._reporter = Reporter(connection, at_once=True)
        self._number = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- jobs --------------------------------------------------------------------------------------

    def run_queue(
        self, keys: QueueKeys, drained: Drained, stop: bool, work: Callable[[], bool]
    ) -> Steps[bool]:
        """Run jobs of a queue until none is ready; whether there was one. stop: behind the first
        that fails. work: whether there may be something to run. The consumer stays until
        `leave`, and nothing wakes it."""
        self._prepare()
        subscription = self._serving.get(keys)
        if subscription is None:
            subscription = self._serving[keys] = self._joined(keys)
        ran = False
        try:
            while work():
                jobs = subscription.settle(1)
                if subscription.todo:
                    jobs += [word for job in subscription.todo for word in job[:2]]
                    subscription.todo.clear()
                if not jobs:
                    break
                ran = True
                failed = yield from self._run_one(subscription, jobs[0], jobs[1], drained)
                if failed and stop:
                    break
            if subscription.pending:
                subscription.settle(None)
            if subscription.state != "not_interested":
                self._rest(subscription)
        except BaseException:
            self._serving.pop(keys).unregister()
            raise
        finally:
            self._slot.job = None
        return ran

    def leave(self) -> None:
        """Leave the queues whose jobs were run."""
        while self._serving:
            self._serving.popitem()[1].unregister()

    def _rest(self, subscription: Subscription) -> None:
        """From now on nothing wakes a consumer."""
        call = subscription.interest_call(Window(0))
        subscription.state = self._connection.run(call, queue=subscription.queue)

    def _joined(self, keys: QueueKeys) -> Subscription:
        self._number += 1
        subscription = Subscription(
            0, keys, self._connection, NAME, self._page, settings=self.settings,
            reporter=self._reporter,
        )  # fmt: skip
        joining = subscription.registering(
            f"{NAME}-{self._number}", priority=0, lease_ms=FOREVER_MS, slots=1, jobs=1
        )
        run_course(joining, subscription.run)
        run_course(subscription.preparing([task.name for task in registry]), subscription.run)
        return subscription

    def _run_one(self, of: Subscription, id: bytes, value: bytes, drained: Drained) -> Steps[bool]:
        acquired = of.now
        try:
            head, plan, args, kwargs, opts = self._decoded(of, id, value, acquired)
        except Unfit as unfit:
            of.unfit(id, value, unfit.outcome)
            error = _why_unfit(unfit)
            name = unfit.outcome.task if unfit.outcome is not None else ""
            outcome = unfit.outcome.outcome if unfit.outcome is not None else "release"
            ran = Ran(id.decode(), name, [], {}, of.queue, 0, outcome, error=error)
            drained.jobs.append(ran)
            return ran.failed
        row: Ack = (id, value, head, plan.name, acquired, monotonic(), monotonic())
        if plan.early and not self._acked(of, row):
            return False
        self._slot.job = (of, id, value, plan.name, opts, row[5], acquired, None)
        context = copy_context()
        made = self._slot.context()
        assert made is not None
        result, failure = yield from self._called(plan, args, kwargs, context, made)
        row = (*row[:6], monotonic())
        done: Any = None
        if not plan.early:
            done = self._attempts.ended(row, plan, result, failure, of)
            of.ended(done)
        elif failure is not None:
            self._attempts.lost(id, plan, failure)
        said = getattr(done, "outcome", "done" if failure is None else "lost")
        ran = Ran(
            id.decode(), plan.name, list(args), dict(kwargs), of.queue, made.attempts + 1, said,
            result, failure,
        )  # fmt: skip
        drained.jobs.append(ran)
        return ran.failed

    def _called(
        self,
        plan: Plan,
        args: list[Any],
        kwargs: dict[str, Any],
        context: Context,
        job: JobContext,
    ) -> Steps[tuple[Any, BaseException | None]]:
        context.run(current.set, job)
        try:
            if plan.executor == ASYNC:
                return (yield context.run(plan.function, *args, **kwargs), context), None
            return context.run(plan.function, *args, **kwargs), None
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            return None, error

    def call(self, context: JobContext, args: Iterable[Any], kwargs: dict[str, Any]) -> Steps[Any]:
        """Call a task's function with all that is around it, as the job of this context, which no
        queue has; its result. Raises what it raises."""
        self._prepare()
        plan = self._plans.get(context.task)
        if plan is None:
            registry.get(context.task)  # raises, and names the nearest ones
        result, error = yield from self._called(
            plan, list(args), dict(kwargs), copy_context(), context
        )
        if error is not None:
            raise error
        return result

    def _decoded(self, of: Subscription, id: bytes, value: bytes, acquired: int) -> Decoded:
        now = monotonic()
        try:
            return self._attempts.decode(of, id, value, acquired, now)
        except Unfit as unfit:
            if unfit.outcome is not None:
                raise
        # of a task that is unknown: there are no others to look at it, so it is parked at once
        return self._attempts.decode(of, id, value, acquired, now)

    def _acked(self, of: Subscription, row: Ack) -> bool:
        answers: list[bool] = []
        of.ack_early(row, answers.append)
        of.settle(None)
        of.withdraw(row)
        return answers == [True]

    # -- what is around them -----------------------------------------------------------------------

    def _made(self) -> Attempts:
        return TestAttempts(self._spec, self._plans, NAME, self.settings.signer, self._middleware)

    def _prepare(self) -> None:
        """Look what the application runs around its jobs by now, and open what it needs."""
        around = tuple(app.middleware())
        if around != self._middleware:
            self._middleware = around
            self._plans.clear()
            self._attempts = self._made()
        if self._services is None:
            tasks = list(registry)
            info = WorkerInfo(NAME, (), tuple(task.name for task in tasks))
            services = Services(info, tasks, self._held)
            try:
                services.open(self)  # type: ignore[arg-type]  # of a loop it needs `complete`
            except AppError as error:
                raise ConfigError("app", str(error)) from error
            self._services = services

    def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end: on a loop of the worker's own, beside the test's."""
        return self.completed(work, copy_context())

    def completed(self, work: Coroutine[Any, Any, T], context: Context) -> T:
        """The same, in a context."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        loop = self._loop

        async def run() -> T:
            return await asyncio.Task(work, context=context)

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return loop.run_until_complete(run())
        return _in_thread(lambda: loop.run_until_complete(run()))

    def close(self) -> None:
        """End what the application began, and leave the queues."""
        self.leave()
        for subscription in self._declaring.values():
            subscription.unregister()
        self._declaring.clear()
        if self._services is not None:
            self._services.close()
            self._services = None
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._loop = None

    # -- queues ------------------------------------------------------------------------------------

    def declare(self) -> None:
        """Say to the queues which periodic jobs the code declares, as a worker does that serves
        them; one consumer stays in each of them that takes nothing."""
        plans = [plan for plan in map(self._plans.get, _periodic()) if plan is not None]
        declared = [one for plan in plans for one in plan.declares]
        for queue in sorted({one.queue for one in declared}):
            keys = QueueKeys(queue, self.settings.namespace)
            subscription = self._declaring.get(keys)
            if subscription is None:
                subscription = self._declaring[keys] = self._joined(keys)
                self._rest(subscription)
            declaring = subscription.declaring(declared, "", self.settings.signer)
            run_course(declaring, subscription.run)

    def upkeep(self, keys: QueueKeys) -> None:
        """What a supervisor does now and then."""
        more = True
        while more:
            renewed = self._connection.run(commands.renew(keys, FOREVER_MS, []), queue=keys.queue)
            more = renewed.more
        if renewed.outgoing:
            forward_soon(self._connection.run, keys)
        if renewed.lacking:
            refill_soon(self._connection.run, keys, renewed.lacking, self.settings.signer)


def _periodic() -> list[str]:
    return [task.name for task in registry if task.schedules]


def _why_unfit(unfit: Unfit) -> RQueueError | None:
    """The error of a job that cannot be run here; None for one that only came early."""
    if unfit.outcome is None or unfit.outcome.outcome == "snooze":
        return None
    cause = unfit.outcome.cause or getattr(unfit.outcome.again, "error", b"")
    said = cause.decode(errors="replace")
    if unfit.outcome.outcome == "park":
        return UnknownTask(unfit.outcome.task)
    return RQueueError(said)


def _in_thread(work: Callable[[], T]) -> T:
    """Do something in a thread of its own, and wait for it: a loop runs in this one."""
    ended: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            ended.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="rqueue-test-loop")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return ended[0]
