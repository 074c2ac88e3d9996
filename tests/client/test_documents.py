"""The code on the pages about the client runs as it is written."""

import inspect
import logging
import re
import threading
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import pytest

import rqueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisTimeout, Unsigned
from rqueue.inspector.jobs import PAGE_MAX
from rqueue.model.ids import MAX_ID_BYTES
from rqueue.model.job import Delivery
from rqueue.model.names import MAX_NAME
from rqueue.protocol.commands.enqueue import BATCH
from rqueue.protocol.job_packer import Call
from rqueue.protocol.queue_options import LIMITS
from rqueue.settings import Settings
from rqueue.tasks.context import JobContext, current
from rqueue.tasks.registry import registry
from rqueue.testing import in_memory
from tests.support.pages import DOCS, blocks


@contextmanager
def worker(queue: Queue) -> Iterator[None]:
    """Runs the jobs of a queue, as far as their tasks are known here."""
    stop = threading.Event()

    def loop() -> None:
        with queue.consumer(jobs=50, renew=False) as consumer:
            while not stop.is_set():
                if (job := consumer.receive(0.1)) is None:
                    continue
                name, args, kwargs, _ = queue.envelope(job)
                found = registry.find(name)
                consumer.ack(job, found(*args, **kwargs) if found else None)  # type: ignore[operator]

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(20)


@pytest.fixture
def namespace(
    no_defaults: Any, private_server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    monkeypatch.setenv("RQUEUE_URL", private_server.url)
    monkeypatch.setattr(registry, "_tasks", {})
    names: dict[str, Any] = {"__name__": "page"}
    yield names
    for value in names.values():
        if isinstance(value, Queue | rqueue.BackgroundPuts):
            value.close()


def run_page(page: str, names: dict[str, Any]) -> None:
    exec(compile(blocks(page), page, "exec"), names)


def test_the_page_of_the_client(namespace: dict[str, Any], private_server: EmbeddedRedis) -> None:
    with Queue("mail", private_server.url) as queue, worker(queue):
        run_page("client.md", namespace)
        assert namespace["value"] == "en: welcome, 8"
        namespace["order_placed"](7)
        assert queue.job("welcome-7").result(20)
        namespace["putter"].flush()
    with Queue("own", private_server.url) as queue:
        sent = [queue.send("t", [i]).id for i in range(12)]
        assert namespace["work_on"](queue) == sent
    assert namespace["work_off"](queue.at("empty")) == 0
    with Queue("seen", private_server.url) as seen:
        job = seen.send("t")
        assert namespace["watch"](seen) == [job.id]
        assert job.state() == "ready"


def test_the_page_of_periodic_jobs(
    namespace: dict[str, Any], private_server: EmbeddedRedis
) -> None:
    with Queue("reports", private_server.url) as queue:
        run_page("periodic_jobs.md", namespace)
        assert [info.name for info in queue.schedules.list()] == ["report:eu"]
        assert namespace["states"] == {"poll": ("active", 0), "report:eu": ("active", 1)}
        assert {(tick.hour, tick.minute) for tick in namespace["ticks"]} == {(3, 30)}
        with worker(queue):
            assert namespace["handle"].result(20) == "eu at once"


def test_the_page_of_running_jobs(namespace: dict[str, Any], private_server: EmbeddedRedis) -> None:
    run_page("running_jobs.md", namespace)
    kept: list[str] = []

    class Keeper:
        behind: ClassVar[WeakValueDictionary[str, Any]] = WeakValueDictionary()

        def keep_steps(self, id: str, deliveries: int, text: str) -> None:
            kept.append(text)

        async def akeep_steps(self, id: str, deliveries: int, text: str) -> None:
            raise AssertionError("the tasks are plain functions")

    def attempt(name: str, steps: str = "") -> Any:
        value = f"1,1|n{steps};[]".encode()
        current.set(JobContext(Delivery("id", value), name, "orders", keeper=Keeper()))
        return namespace[name].function(*[7] * (name == "order"))

    assert attempt("order") == 1007
    namespace["pay"] = None  # what is done is not called again
    assert attempt("order", kept[-1]) == 1007
    attempt("remind")
    attempt("remind", kept[-1])
    current.set(JobContext(Delivery("id", b"1,1;[]"), "render_pages", "orders"))
    namespace["render_pages"].function(3)
    current.set(None)
    assert namespace["reminded"] == [1, 2, 3, 4, 5]
    with Queue("reports", private_server.url) as queue:
        job = queue.enqueue(namespace["render_pages"], 3)
        job.cancel()
        assert namespace["follow"](job) == ["cancelled "]


def test_the_page_of_workflows(namespace: dict[str, Any], private_server: EmbeddedRedis) -> None:
    with Queue("default", private_server.url) as queue:
        queue.configure(kind="flows")
        with worker(queue), worker(queue.at("crawl")):
            run_page("workflows.md", namespace)


def test_the_page_of_unique_jobs(namespace: dict[str, Any]) -> None:
    run_page("unique_jobs.md", namespace)


def test_the_page_of_security(namespace: dict[str, Any], private_server: EmbeddedRedis) -> None:
    names: dict[str, Any] = {**namespace, "Queue": Queue}
    run_page("security.md", names)
    keys = {"k1": "0123456789abcdef"}
    with Queue("signed", private_server.url, signing_keys=keys) as queue:
        queue.send("shop.first")
        queue.enqueue_many([Call("shop.second"), Call("shop.third")])
        with queue.putter() as putter:
            putter.put("shop.fourth")
        assert names["work_off_signed"](queue) == [
            f"shop.{name}" for name in ("first", "second", "third", "fourth")
        ]
        Queue("signed", private_server.url).send("shop.unsigned")
        with pytest.raises(Unsigned):
            names["work_off_signed"](queue)


def test_the_page_of_web_applications(
    namespace: dict[str, Any], private_server: EmbeddedRedis
) -> None:
    text = blocks("web.md").replace("timeout=5", "timeout=0.01")
    exec(compile(text, "web.md", "exec"), namespace)
    start, look = namespace["start"], namespace["look"]
    with Queue("mail", private_server.url) as queue:
        _, first = start(6)
        assert look(first["job"]) == (202, {"state": "ready"})
        assert look("nobody") == look("no\nid") == (404, {"state": "unknown"})
        cancelled = queue.send("t")
        cancelled.cancel()
        assert look(cancelled.id)[0] == 410
        with worker(queue):
            assert queue.job(first["job"]).result(20) == "receipt for order 6"
        assert look(first["job"]) == (200, {"result": "receipt for order 6"})
        _, failing = start(8)
        with queue.consumer(renew=False) as consumer:
            (job,) = consumer.pull()
            consumer.settle(reject=[(job, {"type": "ValueError"})])
        assert look(failing["job"]) == (500, {"state": "dead", "error": "ValueError"})
        namespace["note_visit"](9)
        assert namespace["putter"].flush(20)
        assert queue.counts().ready == 1


def test_a_view_answers_while_redis_is_away(
    namespace: dict[str, Any], private_server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens; then what was stored is not said, and the caller comes again."""
    exec(compile(blocks("web.md"), "web.md", "exec"), namespace)
    place, receipt = namespace["place"], namespace["send_receipt"]
    rqueue.configure("redis://127.0.0.1:1")
    assert place(6) == (503, {"error": "try again", "stored": False})
    rqueue.configure(private_server.url)
    assert place(6) == (202, {"job": "receipt-6", "new": True})

    def unanswered(*_: Any, **__: Any) -> None:
        bound(6)
        raise RedisTimeout("no answer")

    bound = receipt.options(id="receipt-6").enqueue
    monkeypatch.setattr(type(receipt.options(id="receipt-6")), "enqueue", unanswered)
    assert place(6) == (503, {"error": "try again", "stored": None})
    monkeypatch.undo()
    with Queue("mail", private_server.url) as queue:
        assert queue.counts().ready == 1


def test_the_page_of_jobs(namespace: dict[str, Any], private_server: EmbeddedRedis) -> None:
    run_page("jobs.md", namespace)
    assert namespace["deliver"]("p1") == "delivered p1"
    for state, kind in (("busy", "Retry"), ("early", "Snooze"), ("unknown", "Reject")):
        with pytest.raises(getattr(rqueue, kind)):
            namespace["deliver"]("p1", state)
    assert namespace["report"]("May") == "report of May"
    text = (DOCS / "jobs.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", text, re.M))
    policy = {field.name: field.default for field in fields(rqueue.RetryPolicy)}
    assert {name: rows[name] for name in policy if name in rows}.keys() == policy.keys()
    for name, default in policy.items():
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        assert shown in rows[name], name
    known = {name for name in dir(rqueue.JobContext) if not name.startswith("_")}
    table = text.partition("| `current_job()` has | |")[2].partition("\n\n")[0]
    assert known == set(re.findall(r"`([a-z_]+)`", table))


NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
"""Far from the page's nightly report."""


def test_the_page_of_tests(namespace: dict[str, Any]) -> None:
    run_page("testing.md", namespace)
    tests = [value for name, value in namespace.items() if name.startswith("test_")]
    assert len(tests) == 8
    for test in tests:
        if "rqueue" in inspect.signature(test).parameters:
            marks = getattr(test, "pytestmark", [])
            with in_memory(**{"at": NOON, **(marks[0].kwargs if marks else {})}) as harness:
                namespace["outbox"].clear()
                test(harness)
        else:
            test()
    result = unittest.TestResult()
    namespace["SignupTests"]("test_signup").run(result)
    assert result.wasSuccessful()
    assert namespace["check_by_hand"]() == 1


def test_the_page_of_operating(
    namespace: dict[str, Any], private_server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("rqueue.worker"), "level", logging.NOTSET)
    with Queue("mail", private_server.url) as queue:
        queue.send("t")
        run_page("operating.md", namespace)
    assert namespace["problems"] == []
    text = (DOCS / "operating.md").read_text(encoding="utf-8")
    methods = {name for name in vars(rqueue.Inspector) if not name.startswith("_")}
    for name in methods - {"keys", "require_queue", "close", "each"}:
        assert f"`{name}" in text, name


def test_all_variables_are_on_one_page() -> None:
    text = (DOCS / "operating.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`RQUEUE_.*?) \| (.*?) \|", text, re.M)
    documented = {name for first, _ in rows for name in re.findall(r"RQUEUE_\w+", first)}
    used = {
        name
        for base in ("rqueue", "workers")
        for path in (DOCS.parent / base).rglob("*.py")
        for name in re.findall(r'"(RQUEUE_[A-Z_]+)"', path.read_text(encoding="utf-8"))
        if "demo" not in path.parts
    }
    assert documented == used
    for first, default in rows:
        (name, *more) = re.findall(r"RQUEUE_\w+", first)
        if default != "none" and not more:
            assert Settings.load({name: default.strip("`")}) == Settings.load({}), name


def test_limits_are_as_the_page_says() -> None:
    text = (DOCS / "operating.md").read_text(encoding="utf-8")
    assert f"{MAX_NAME} characters" in text
    assert f"{MAX_ID_BYTES} bytes" in text
    assert f"priority levels | {LIMITS['priorities'][1]}," in text
    assert f"{PAGE_MAX} jobs |" in text
    assert f"any number, {BATCH} and" in text


@pytest.mark.parametrize(
    "page",
    [
        *("client.md", "web.md", "django.md", "flask.md", "fastapi.md"),
        *("jobs.md", "testing.md", "operating.md", "security.md"),
    ],
)
def test_pages_name_what_there_is(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for name in re.findall(r"`rqueue\.([a-z]+)\(", text):
        assert name in rqueue.__all__
    for name in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (DOCS / name).exists(), name
