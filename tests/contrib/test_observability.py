"""Sentry, OpenTelemetry, JSON logs and structlog: the real libraries around a worker's jobs."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sentry_sdk
from opentelemetry import baggage, context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rqueue.client._sync.queue import Queue
from rqueue.contrib.opentelemetry import OpenTelemetry
from rqueue.contrib.sentry import Sentry
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, JobFailed
from rqueue.model.job import Delivery
from rqueue.tasks.app import App
from rqueue.tasks.context import JobContext
from rqueue.tasks.options import Options
from tests.support.pages import blocks
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture
from tests.workers.pools import Pool, make_pool  # noqa: F401

Read = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def workers(server: EmbeddedRedis, queue_name: str, tmp_path: Path) -> Any:
    made = WorkerFixture(server.url, queue_name, tmp_path)
    yield made
    made.close()


@contextmanager
def exported() -> Iterator[tuple[InMemorySpanExporter, TracerProvider]]:
    """What this process, which enqueues, exports."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    reader = InMemoryMetricReader()
    figures = MeterProvider([reader])
    with App(middleware=[OpenTelemetry(tracer_provider=provider, meter_provider=figures)]):
        yield exporter, provider
    figures.shutdown()
    provider.shutdown()


def test_jobs_are_seen(
    workers: WorkerFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = f"{workers.name}:seen"
    monkeypatch.setenv("SAY", key)
    monkeypatch.setenv("LOG", str(tmp_path / "app.log"))
    child = workers.child(app=("tests.contrib.observed_app",))
    with exported() as (exporter, provider):
        token = context.attach(baggage.set_baggage("tenant", "acme"))
        with provider.get_tracer("web").start_as_current_span("request"):
            done = workers.queue.send("o.work", ["well"], options=Options(id="well"))
            failed = workers.queue.send("o.work", ["fail"], options=Options(id="fail"))
        context.detach(token)
        rejected = workers.queue.send("o.work", ["reject"], options=Options(id="rej"))
        waited = workers.queue.send("o.awork", options=Options(id="awork"))
        sent = exporter.get_finished_spans()
    assert done.result(PATIENCE) == "acme"
    for job in (failed, rejected):
        with pytest.raises(JobFailed):
            job.result(PATIENCE)
    waited.result(PATIENCE)
    assert child.leave() == 0

    def read(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in workers.redis.lrange(f"{key}:{name}", 0, -1)]

    check_spans(sent, read, workers.name)
    check_sentry(read)
    (figures,) = read("metrics")
    (metric,) = [
        metric
        for scope in figures["resource_metrics"][0]["scope_metrics"]
        for metric in scope["metrics"]
        if metric["name"] == "messaging.process.duration"
    ]
    points = metric["data"]["data_points"]
    assert sum(point["count"] for point in points) == 5
    assert {point["attributes"].get("error.type") for point in points} == {None, "LookupError"}
    check_logs(tmp_path / "app.log", workers.name)


def check_spans(spans: Any, read: Read, queue: str) -> None:
    sent = {span.attributes.get("messaging.message.id"): span for span in spans}
    root = sent[None]
    assert (root.name, sent["well"].name, sent["well"].kind.name) == (
        "request", f"send {queue}", "PRODUCER",
    )  # fmt: skip
    assert sent["well"].parent.span_id == root.context.span_id
    ran: dict[str, list[dict[str, Any]]] = {}
    for span in read("spans"):
        assert (span["name"], span["kind"], span["parent"]) == (
            f"process {queue}",
            "CONSUMER",
            None,
        )
        ran.setdefault(span["attributes"]["messaging.message.id"], []).append(span)
    assert {id_: len(spans) for id_, spans in ran.items()} == {
        "well": 1, "fail": 2, "rej": 1, "awork": 1,
    }  # fmt: skip
    for id_, attempts in ran.items():
        origin = sent[id_].context
        for attempt in attempts:
            assert attempt["links"] == [[origin.trace_id, origin.span_id]]
            assert attempt["trace"] != origin.trace_id
    assert [span["status"] for span in ran["fail"]] == ["ERROR", "ERROR"]
    assert ran["fail"][0]["events"] == ["exception"]
    assert [span["attributes"]["rqueue.delivery"] for span in ran["fail"]] == [1, 2]
    assert (ran["rej"][0]["status"], ran["rej"][0]["attributes"]["rqueue.outcome"]) == (
        "UNSET", "reject",
    )  # fmt: skip


def check_sentry(read: Read) -> None:
    (event,) = read("events")  # one: the last attempt, and no decision of a job
    (raised,) = event["exception"]["values"]
    assert (raised["type"], raised["mechanism"]["type"]) == ("LookupError", "rqueue")
    assert raised["mechanism"]["handled"] is False
    assert event["tags"]["rqueue.task"] == "o.work"
    assert (event["contexts"]["rqueue"]["id"], event["contexts"]["rqueue"]["delivery"]) == (
        "fail",
        2,
    )
    assert event["breadcrumbs"]["values"][0]["message"] == "begins", "of this attempt alone"
    transactions = read("transactions")
    assert [one["transaction"] for one in transactions].count("o.work") == 4
    last = [one for one in transactions if one["contexts"]["rqueue"]["id"] == "fail"][-1]
    assert event["contexts"]["trace"]["trace_id"] == last["contexts"]["trace"]["trace_id"]


def check_logs(path: Path, queue: str) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    well = [line for line in lines if line.get("job") == "well"]
    assert [line.get("message") or line.get("event") for line in well] == ["begins", "begins too"]
    for line in well:
        assert (line["task"], line["queue"], line["delivery"]) == ("o.work", queue, 1)
    assert [line["message"] for line in lines if line["job"] == "awork"] == ["async"]


def job(headers: dict[str, str]) -> JobContext:
    return JobContext(Delivery("j", b"0,0;[]"), "t", "q", {"headers": headers})


def test_a_child_of_the_same_trace() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with exported() as (exporter, provider):
        hooks = OpenTelemetry(propagate="child", tracer_provider=provider)
        with hooks.job_scope(job({"traceparent": parent})):
            pass
        with hooks.job_scope(job({"traceparent": "nonsense"})):
            pass
        child, alone = exporter.get_finished_spans()
    assert (child.context.trace_id, child.parent.span_id, child.links) == (
        0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, (),
    )  # fmt: skip
    assert (alone.parent, alone.links) == (None, ())
    with pytest.raises(ConfigError, match="'yes' is neither 'link' nor 'child'"):
        OpenTelemetry(propagate="yes")  # type: ignore[arg-type]


def test_sentry_before_it_is_initialised_changes_nothing() -> None:
    assert not sentry_sdk.get_client().is_active()
    hooks = Sentry(retries=True)
    with pytest.raises(KeyError) as raised, hooks.job_scope(job({})):
        raise KeyError("x")
    hooks.on_retry(job({}), raised.value, 1.0)
    hooks.on_dead(job({}), RuntimeError("of no scope"))


def test_the_page(
    make_pool: Callable[..., Pool],  # noqa: F811
    tmp_path: Path,
    server: EmbeddedRedis,
    queue_name: str,
) -> None:
    (tmp_path / "observed_page.py").write_text(blocks("observability.md"))
    pool = make_pool(app=["observed_page"], path=str(tmp_path), log_format="json")
    with Queue(queue_name, server.url) as queue:
        for number, task in enumerate(("ship", "pack")):
            queue.send(f"observed_page.{task}", [number]).result(PATIENCE)
    assert pool.drained() == 0
    lines = [json.loads(line) for line in pool.log.splitlines()]
    shipped, packed = [line for line in lines if line.get("logger", "shop") == "shop"]
    assert (shipped["message"], shipped["task"]) == ("shipped 0", "observed_page.ship")
    assert (packed["order"], packed["task"]) == (1, "observed_page.pack")
