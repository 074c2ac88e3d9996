"""Sentry: what jobs fail of, and their traces (extra `sentry`).

    sentry_sdk.init(dsn=...)
    App(middleware=[Sentry()])

A job that failed for good is an event, with the job's own breadcrumbs, tags and trace; an attempt
that is tried again only where that is asked for. `Retry`, `Snooze` and `Reject` are decisions, not
failures, and no events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import sentry_sdk
from sentry_sdk.integrations.logging import ignore_logger
from sentry_sdk.scope import use_isolation_scope, use_scope
from sentry_sdk.utils import event_from_exception

from rqueue.tasks.context import JobContext
from rqueue.tasks.control import Control
from rqueue.tasks.middleware import Middleware, WorkerInfo
from rqueue.tasks.request import JobRequest

__all__ = ["Sentry"]

T = TypeVar("T")

TRACE = ("sentry-trace", "baggage")
"""The headers in which a trace travels."""

FLUSH_S = 5.0
"""How long a worker that ends waits for its last events to be sent."""

_SCOPES = "_rqueue_sentry_scopes"


class Sentry(Middleware):
    """Events of jobs that failed, transactions of attempts, spans of enqueues.

    retries: also those that are tried again are events. `sentry_sdk.init` is the application's.
    """

    def __init__(self, *, retries: bool = False) -> None:
        self._retries = retries
        # its lines about failures would be events as well, without what is known of the job
        ignore_logger("rqueue.worker")

    def around_enqueue(self, request: JobRequest, call: Callable[[JobRequest], T]) -> T:
        """A span, if there is a transaction; the trace travels with the job."""
        with sentry_sdk.start_span(op="queue.publish", name=request.task) as span:
            span.set_data("messaging.system", "rqueue")
            span.set_data("messaging.destination.name", request.queue)
            values = (sentry_sdk.get_traceparent(), sentry_sdk.get_baggage())
            headers = {name: value for name, value in zip(TRACE, values, strict=True) if value}
            made: Any = call(request.with_headers(headers) if headers else request)
            span.set_data("messaging.message.id", made.id)
        answer: T = made
        return answer

    @contextmanager
    def job_scope(self, job: JobContext) -> Iterator[None]:
        """A scope of its own for each attempt, and a transaction in the trace of its enqueue."""
        with sentry_sdk.isolation_scope() as scope:
            scope.clear_breadcrumbs()
            scope.set_tag("rqueue.task", job.task)
            scope.set_tag("rqueue.queue", job.queue)
            about = {"id": job.id, "task": job.task, "queue": job.queue, "delivery": job.delivery}
            scope.set_context("rqueue", about)
            sent = {name: job.headers[name] for name in TRACE if name in job.headers}
            transaction = sentry_sdk.continue_trace(
                sent, op="queue.process", name=job.task, source="task"
            )
            with sentry_sdk.start_transaction(transaction) as running:
                running.set_data("messaging.system", "rqueue")
                running.set_data("messaging.destination.name", job.queue)
                running.set_data("messaging.message.id", job.id)
                try:
                    yield
                except Control:
                    raise
                except BaseException as error:
                    _keep(error, (scope, sentry_sdk.get_current_scope().fork()))
                    raise

    def on_retry(self, job: JobContext, error: BaseException, delay: float) -> None:
        """An event where that is asked for."""
        if self._retries:
            _capture(error)

    def on_dead(self, job: JobContext, error: BaseException) -> None:
        """An event."""
        _capture(error)

    def shutdown(self, worker: WorkerInfo) -> None:
        """Send what is left: the process ends."""
        sentry_sdk.flush(FLUSH_S)


def _keep(error: BaseException, scopes: Any) -> None:
    """Let an error remember in which scopes it was raised, until it is decided what comes of it."""
    try:
        setattr(error, _SCOPES, scopes)
    except AttributeError:  # one without a dict: its event has no scope
        return


def _capture(error: BaseException) -> None:
    if isinstance(error, Control):
        return
    options = sentry_sdk.get_client().options
    event, hint = event_from_exception(error, options, {"type": "rqueue", "handled": False})
    isolation, current = getattr(error, _SCOPES, (None, None))
    if isolation is None or current is None:
        sentry_sdk.capture_event(event, hint=hint)
        return
    with use_isolation_scope(isolation), use_scope(current):
        sentry_sdk.capture_event(event, hint=hint)
