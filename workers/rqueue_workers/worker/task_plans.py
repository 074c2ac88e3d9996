"""The application's tasks as plans: all that the hot loop looks up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rqueue.errors import ConfigError
from rqueue.logs import enable
from rqueue.tasks import app
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry, registry
from rqueue.tasks.retry import DEFAULT_RETRY, RetryPolicy
from rqueue.tasks.signature import CallChecker
from rqueue.tasks.task import Task
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.worker.app_import import AppError
from rqueue_workers.worker.composing import Held, composed
from rqueue_workers.worker.declaring import Declaration, declarations_of

MAIN, THREAD, ASYNC = range(3)
"""Executors: where a job runs. Sync tasks in the main thread or in threads, async ones on the
loop."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How jobs of one task run here. time_limit, soft_time_limit: seconds, 0 = none. keep_ms: of
    the result, None = the queue's. most, crashes: attempts, and those of them that may cost a
    process, 0 = the queue's. plain: nothing has to be watched while it runs. queue: where its calls
    go by default. early: its jobs are acked before they begin. declares: its schedules.
    check: refuses arguments that the task does not take."""

    name: str
    function: Any
    executor: int
    runs: Options
    policy: RetryPolicy = DEFAULT_RETRY
    time_limit: float = 0.0
    soft_time_limit: float = 0.0
    keep_ms: int | None = None
    most: int = 0
    crashes: int = 0
    plain: bool = True
    queue: str = ""
    early: bool = False
    declares: tuple[Declaration, ...] = ()
    check: CallChecker | None = None

    def for_job(self, opts: Mapping[str, Any], spec: WorkerSpec) -> Plan:
        """The plan of a job whose envelope has options of its own. Raises ConfigError."""
        return fill(replace(self, runs=self.runs.for_run(opts)), spec)


def fill(plan: Plan, spec: WorkerSpec) -> Plan:
    """Work out of the options what the executors need to know."""
    runs = plan.runs
    policy = runs.retry or DEFAULT_RETRY
    time_limit = runs.time_limit if runs.time_limit is not None else spec.time_limit
    soft = runs.soft_time_limit if runs.soft_time_limit is not None else spec.soft_time_limit
    return replace(
        plan,
        policy=policy,
        time_limit=time_limit,
        soft_time_limit=soft,
        keep_ms=None if runs.keep is None else round(runs.keep * 1000),
        most=runs.max_deliveries or policy.max_deliveries,
        crashes=runs.max_crashes or 0,
        plain=not (time_limit or soft or plan.early),
    )


def plan_of(task: Task[Any, Any], spec: WorkerSpec, held: Held | None = None) -> Plan:
    """The plan of a registered task. held: what the process holds for its jobs, see `composed`.
    Raises ConfigError."""
    executor = ASYNC if task.is_async else THREAD if spec.threads else MAIN
    early = task.ack == "early"
    around = tuple(app.middleware()), app.context_variables(), {} if held is None else held
    function = composed(task, *around)
    plan = Plan(
        task.name,
        function,
        executor,
        task.runs,
        queue=task.queue,
        early=early,
        check=task.check,
        declares=tuple(declarations_of(task)),
    )
    return fill(plan, spec)


def task_limits(plans: Mapping[str, Plan], spec: WorkerSpec) -> dict[str, tuple[int, int]]:
    """What tasks and pool allow their jobs, as `store.register` takes it: the queue judges by it
    when a job that came by its task's name has cost this worker its process."""
    limits = {
        plan.name: (plan.most, plan.crashes) for plan in plans.values() if plan.most or plan.crashes
    }
    if spec.max_crashes:
        limits["*"] = (0, spec.max_crashes)
    return limits


def load_plans(
    spec: WorkerSpec, tasks: Registry = registry, held: Held | None = None
) -> dict[str, Plan]:
    """The plans of the tasks of the application, which is imported, by name. held: see `plan_of`.
    Raises AppError."""
    enable()
    try:
        plans = [plan_of(task, spec, held) for task in tasks]
    except ConfigError as error:
        raise AppError(f"the app cannot be used: {error}") from None
    # without async slots nobody here can run them: as if they were unknown
    return {plan.name: plan for plan in plans if plan.executor != ASYNC or spec.async_slots}
