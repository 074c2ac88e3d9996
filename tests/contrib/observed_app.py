"""An application that is watched by all there is; what its exporters get goes into lists."""

import json
import logging
import os
from typing import Any

import redis
import sentry_sdk
import sentry_sdk.transport
import structlog
from opentelemetry import baggage, metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from rqueue.contrib.logs import JobFields, add_job
from rqueue.contrib.opentelemetry import OpenTelemetry
from rqueue.contrib.sentry import Sentry
from rqueue.logs import JsonFormatter
from rqueue.tasks.app import App
from rqueue.tasks.control import Reject
from rqueue.tasks.decorator import task
from rqueue.tasks.middleware import Middleware, WorkerInfo
from rqueue.tasks.retry import RetryPolicy

client = redis.Redis.from_url(os.environ["CHILD_TEST_URL"])
KEY = os.environ["SAY"]


class ToRedis(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        for span in spans:
            client.rpush(f"{KEY}:spans", json.dumps(shown(span)))
        return SpanExportResult.SUCCESS


def shown(span: ReadableSpan) -> dict[str, Any]:
    return {
        "name": span.name,
        "kind": span.kind.name,
        "trace": span.context.trace_id,
        "parent": span.parent.span_id if span.parent else None,
        "links": [(link.context.trace_id, link.context.span_id) for link in span.links],
        "attributes": dict(span.attributes or {}),
        "status": span.status.status_code.name,
        "events": [event.name for event in span.events],
    }


class Transport(sentry_sdk.transport.Transport):
    def capture_envelope(self, envelope: Any) -> None:
        for item in envelope.items:
            if item.type in ("event", "transaction"):
                client.rpush(f"{KEY}:{item.type}s", item.payload.get_bytes())


provider = TracerProvider()
# long: what is exported is exported by the worker's end
provider.add_span_processor(BatchSpanProcessor(ToRedis(), schedule_delay_millis=600_000))
trace.set_tracer_provider(provider)
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
sentry_sdk.init("http://k@127.0.0.1:1/1", transport=Transport, traces_sample_rate=1.0)


class Figures(Middleware):
    def shutdown(self, worker: WorkerInfo) -> None:
        data: Any = reader.get_metrics_data()
        client.rpush(f"{KEY}:metrics", data.to_json())


app = App(middleware=[Figures(), OpenTelemetry(), Sentry()])

handler = logging.StreamHandler(open(os.environ["LOG"], "w"))  # noqa: SIM115
handler.setFormatter(JsonFormatter())
handler.addFilter(JobFields())
shop = logging.getLogger("shop")
shop.addHandler(handler)
shop.setLevel(logging.INFO)
structured = structlog.wrap_logger(
    structlog.PrintLogger(handler.stream),
    processors=[add_job, structlog.processors.JSONRenderer()],
)


@task(name="o.work", retry=RetryPolicy(max_deliveries=2, delay=0.01))
def work(what: str) -> str:
    shop.info("begins")
    structured.info("begins too", what=what)
    if what == "fail":
        raise LookupError(what)
    if what == "reject":
        raise Reject("no")
    return str(baggage.get_baggage("tenant"))


@task(name="o.awork")
async def awork() -> None:
    shop.info("async")
