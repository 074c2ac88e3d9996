"""OpenTelemetry: a trace goes with the job, and its attempts are measured (extra `opentelemetry`).

    App(middleware=[OpenTelemetry()])

An enqueue is a PRODUCER span, an attempt a CONSUMER span in a trace of its own that is linked with
it, or one of the same trace (`propagate="child"`). What is propagated (`traceparent`,
`tracestate`, `baggage` by default) travels in the job's headers. Names and attributes are those of
OpenTelemetry's conventions for messaging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Literal, TypeVar

from opentelemetry import context, metrics, propagate, trace
from opentelemetry.trace import Link, SpanKind, StatusCode

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.tasks.context import JobContext
from rqueue.tasks.control import Control
from rqueue.tasks.middleware import Middleware, WorkerInfo
from rqueue.tasks.request import JobRequest
from rqueue.tasks.retry import error_name

__all__ = ["OpenTelemetry"]

T = TypeVar("T")

FLUSH_MS = 5000
"""How long a worker that ends waits for its last spans and figures to be exported."""


class OpenTelemetry(Middleware):
    """Spans and metrics of enqueues and attempts.

    propagate: "link", attempts have traces of their own, linked with that of the enqueue; "child":
    they belong to it. tracer_provider, meter_provider: default the global ones. Raises ConfigError.
    """

    def __init__(
        self,
        *,
        propagate: Literal["link", "child"] = "link",
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        if propagate not in ("link", "child"):
            raise ConfigError("propagate", f"{shown(propagate)} is neither 'link' nor 'child'")
        self._child = propagate == "child"
        self._providers = tracer_provider, meter_provider
        self._tracer = trace.get_tracer("rqueue", tracer_provider=tracer_provider)
        meter = metrics.get_meter("rqueue", meter_provider=meter_provider)
        self._sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Jobs that were made to be enqueued."
        )
        self._seconds = meter.create_histogram(
            "messaging.process.duration", "s", "Duration of the attempts of jobs."
        )

    def around_enqueue(self, request: JobRequest, call: Callable[[JobRequest], T]) -> T:
        """A PRODUCER span, whose context travels with the job."""
        about = _about(request.task, request.queue, "send")
        with self._tracer.start_as_current_span(
            f"send {request.queue}", kind=SpanKind.PRODUCER, attributes=about
        ) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            made: Any = call(request.with_headers(carrier) if carrier else request)
            span.set_attribute("messaging.message.id", made.id)
        self._sent.add(1, about)
        answer: T = made
        return answer

    @contextmanager
    def job_scope(self, job: JobContext) -> Iterator[None]:
        """A CONSUMER span, which is the current one in the job."""
        sent = propagate.extract(job.headers, context=context.Context())
        origin = trace.get_current_span(sent).get_span_context()
        links = []
        if origin.is_valid and not self._child:
            links.append(Link(origin))
            sent = trace.set_span_in_context(trace.INVALID_SPAN, sent)  # the baggage stays
        about = _about(job.task, job.queue, "process")
        mine: dict[str, Any] = {
            **about,
            "messaging.message.id": job.id,
            "rqueue.delivery": job.delivery,
        }
        token = context.attach(sent)
        began = perf_counter()
        failed: dict[str, str] = {}
        try:
            with self._tracer.start_as_current_span(
                f"process {job.queue}",
                kind=SpanKind.CONSUMER,
                attributes=mine,
                links=links,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                try:
                    yield
                except Control as control:
                    span.set_attribute("rqueue.outcome", type(control).__name__.lower())
                    raise
                except BaseException as error:
                    failed["error.type"] = error_name(type(error))
                    span.set_attribute("error.type", failed["error.type"])
                    span.record_exception(error)
                    span.set_status(StatusCode.ERROR, str(error))
                    raise
        finally:
            context.detach(token)
            self._seconds.record(perf_counter() - began, {**about, **failed})

    def shutdown(self, worker: WorkerInfo) -> None:
        """Export what is left: the process ends."""
        traces, figures = self._providers
        for provider in (
            traces or trace.get_tracer_provider(),
            figures or metrics.get_meter_provider(),
        ):
            if flush := getattr(provider, "force_flush", None):  # not of the API alone
                flush(FLUSH_MS)


def _about(task: str, queue: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": "rqueue",
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "rqueue.task": task,
    }
