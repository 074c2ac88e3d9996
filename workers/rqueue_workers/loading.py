"""Importing the application and turning its tasks into plans: all that the hot loop looks up."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rqueue.options import Options
from rqueue.retry import DEFAULT_RETRY, RetryPolicy
from rqueue.task import Registry, Task, registry
from rqueue_workers.spec import WorkerSpec

MAIN, THREAD, ASYNC = range(3)
"""Lanes: where a job runs. Sync tasks in the main thread or in threads, async ones on the loop."""


class AppError(Exception):
    """A module of the application cannot be imported; the message is one line for people."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How jobs of one task run here. limit, soft: seconds, 0 = none. keep_ms: of the result, None =
    the queue's. most: attempts, 0 = the queue's. plain: nothing has to be watched while it runs.
    queue: where its calls go by default."""

    name: str
    function: Any
    lane: int
    runs: Options
    policy: RetryPolicy = DEFAULT_RETRY
    limit: float = 0.0
    soft: float = 0.0
    keep_ms: int | None = None
    most: int = 0
    plain: bool = True
    queue: str = ""

    def for_job(self, opts: Mapping[str, Any], spec: WorkerSpec) -> Plan:
        """The plan of a job whose envelope has options of its own. Raises ConfigError."""
        return fill(replace(self, runs=self.runs.for_run(opts)), spec)


def fill(plan: Plan, spec: WorkerSpec) -> Plan:
    """Work out of the options what the lanes need to know."""
    runs = plan.runs
    policy = runs.retry or DEFAULT_RETRY
    limit = runs.limit if runs.limit is not None else spec.limit
    soft = runs.soft_limit if runs.soft_limit is not None else spec.soft_limit
    return replace(
        plan,
        policy=policy,
        limit=limit,
        soft=soft,
        keep_ms=None if runs.keep is None else round(runs.keep * 1000),
        most=runs.max_deliveries or policy.max_deliveries,
        plain=not (limit or soft),
    )


def plan_of(task: Task[Any, Any], spec: WorkerSpec) -> Plan:
    """The plan of a registered task."""
    lane = ASYNC if task.is_async else THREAD if spec.threads else MAIN
    return fill(Plan(task.name, task.function, lane, task.runs, queue=task.queue), spec)


def import_app(modules: Iterable[str]) -> None:
    """Import the modules that register tasks, from the current directory too. Raises AppError."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    for name in modules:
        try:
            importlib.import_module(name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise AppError(_why(name, error)) from error


def load_plans(spec: WorkerSpec, tasks: Registry = registry) -> dict[str, Plan]:
    """Import the application; its tasks' plans by name. Raises AppError."""
    import_app(spec.app)
    plans = [plan_of(task, spec) for task in tasks]
    # without async slots nobody here can run them: as if they were unknown
    return {plan.name: plan for plan in plans if plan.lane != ASYNC or spec.async_slots}


def _why(module: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
        return f"cannot import the app: no module '{module}' here or on PYTHONPATH"
    place = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "importlib" not in code.co_filename:
            place = f" ({code.co_filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    said = f"{type(error).__name__}: {error}".replace("\n", " ")
    return f"cannot import the app '{module}': {said}{place}"
