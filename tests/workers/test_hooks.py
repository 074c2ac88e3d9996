"""Middleware, context, lifespans, dependencies and typed arguments, in real worker processes."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from contextvars import ContextVar
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import JobFailed
from rqueue.protocol.job_packer import Call
from rqueue.settings import Settings
from rqueue.tasks.app import App
from rqueue.tasks.options import Options
from tests.support.pages import blocks
from tests.support.patience import PATIENCE
from tests.workers.children import ChildProcess, WorkerFixture
from tests.workers.pools import Pool

APP = "tests.workers.hooks_app"


class Hooked:
    """A worker with hooks, and what they said."""

    def __init__(self, workers: WorkerFixture, monkeypatch: pytest.MonkeyPatch) -> None:
        self.workers = workers
        self.queue = workers.queue
        self.key = f"{workers.name}:said"
        monkeypatch.setenv("SAY", self.key)
        self.child: ChildProcess

    def start(self, **options: Any) -> None:
        self.child = self.workers.child(app=(APP,), **options)

    def said(self) -> list[str]:
        """What was said since it was asked last."""
        client = self.workers.redis
        said = [line.decode() for line in client.lrange(self.key, 0, -1)]
        client.delete(self.key)
        return said


@pytest.fixture
def hooked(workers: WorkerFixture, monkeypatch: pytest.MonkeyPatch) -> Hooked:
    return Hooked(workers, monkeypatch)


BEGIN = ["open {queue}", "beside", "number", "anumber", "startup"]
END = ["shutdown", "anumber ends", "beside ends", "closed"]


@pytest.mark.parametrize("threads", [0, 2])
def test_around_the_jobs_and_around_the_worker(hooked: Hooked, threads: int) -> None:
    hooked.start(threads=threads)
    assert hooked.said() == [line.format(queue=hooked.queue.name) for line in BEGIN]
    tenant: ContextVar[str] = ContextVar("tenant")
    tenant.set("acme")
    with App(context=[tenant]):
        job = hooked.queue.send("h.layers", options=Options(id="one"))
        assert job.result(PATIENCE) == "<done>"
    assert hooked.said() == ["outer one 1", "inner begins", "job acme", "inner ends"]
    # what a job sets is gone with it, and a job without a header has no value
    assert hooked.queue.send("h.layers").result(PATIENCE) == "<done>"
    assert hooked.said()[2] == "job nobody"
    assert hooked.queue.send("h.layers.async").result(PATIENCE) == "<done>"
    assert hooked.said() == ["async outer", "inner begins", "async job nobody", "inner ends"]
    assert hooked.child.leave() == 0
    assert hooked.said() == END


def test_what_an_async_job_sets_is_gone_with_it(hooked: Hooked) -> None:
    """Also where the next one begins in the turn of the loop in which it ends."""
    calls = [Call("h.layers.async", options=Options(headers={"tenant": "a"}))]
    jobs = hooked.queue.enqueue_many([*calls, *[Call("h.layers.async")] * 4])
    hooked.start(async_slots=1)
    for job in jobs:
        assert job.result(PATIENCE) == "<done>"
    seen = [line for line in hooked.said() if line.startswith("async job")]
    assert seen == ["async job a", *["async job nobody"] * 4]


def test_what_a_job_decides_passes_through(hooked: Hooked) -> None:
    hooked.start()
    hooked.said()
    send = hooked.queue.send
    headers = {"tenant": "b"}
    retried = send("h.layers", ["retry"], options=Options(id="r", headers=headers))
    with pytest.raises(JobFailed, match="Retry"):
        retried.result(PATIENCE)
    said = hooked.said()
    assert [line for line in said if line.startswith(("outer", "retry", "dead"))] == [
        "outer r 1",
        "outer saw Retry",
        "retry r of {'tenant': 'b'} in 0.01: Retry(None, '')",
        "outer r 2",
        "outer saw Retry",
        "dead r: Retry",
    ]
    assert said.count("job b") == 2
    assert send("h.layers", ["snooze"]).result(PATIENCE) == "<done>"
    assert "outer saw Snooze" in hooked.said()
    rejected = send("h.layers", ["reject"], options=Options(id="x"))
    with pytest.raises(JobFailed, match="no"):
        rejected.result(PATIENCE)
    assert hooked.said()[-2:] == ["outer saw Reject", "dead x: Reject"]
    # hooks that fail are logged, and lose no settle
    assert hooked.workers.settled()
    assert hooked.child.log.count("Inner.on_retry") and hooked.child.log.count("Inner.on_dead") > 1


def test_a_failure_is_reported_from_where_the_job_begins(hooked: Hooked) -> None:
    hooked.start()
    with pytest.raises(JobFailed) as caught:
        hooked.queue.send("h.layers", ["fail"]).result(PATIENCE)
    trace = caught.value.remote_traceback
    assert trace.count("in around_job") == 1 and "rqueue_workers/worker/executors" not in trace
    assert "in layers" in trace


@pytest.mark.parametrize("threads", [0, 1])
def test_dependencies_are_made_for_a_job_and_end_with_it(hooked: Hooked, threads: int) -> None:
    hooked.start(threads=threads)
    hooked.said()
    send = hooked.queue.send
    done = send("h.provided", ["x"], options=Options(id="d"))
    assert done.result(PATIENCE) == ["x", True, True]
    assert hooked.said() == ["begin d", "commit"]
    with pytest.raises(JobFailed, match="ValueError"):
        send("h.provided", ["fail"], options=Options(id="e")).result(PATIENCE)
    assert hooked.said() == ["begin e", "rollback", "dead e: ValueError"]
    # what fails when it ends is the job's failure
    with pytest.raises(JobFailed, match="the commit failed"):
        send("h.provided", ["x"], options=Options(id="torn")).result(PATIENCE)
    assert hooked.said() == ["begin torn", "commit", "dead torn: ConnectionError"]
    assert send("h.provided.async", options=Options(id="a")).result(PATIENCE) is True
    assert hooked.said() == ["begin a", "commit"]
    # nobody but the worker gives one
    with pytest.raises(JobFailed, match="'one' is a dependency, which no caller gives"):
        send("h.provided", ["x"], {"one": 5}).result(PATIENCE)


def test_arguments_are_what_the_annotations_say(hooked: Hooked) -> None:
    hooked.start()
    when, one = datetime(2030, 1, 2, tzinfo=UTC), UUID(int=7)
    kwargs = {"price": Decimal("1.50"), "colour": "red"}
    job = hooked.queue.send("h.typed", [when, one, one], kwargs)
    assert job.result(PATIENCE) == [
        "2030-01-02T00:00:00+00:00", repr(one), repr(one), "Decimal('1.50')",
        "<Colour.RED: 'red'>",
    ]  # fmt: skip
    hooked.said()
    for args, kwargs, said in (
        (["soon"], {}, "when: "),
        ([when, "7"], {}, r"ids\[0\]: "),
        ([when], {"colour": "blue"}, "colour: "),
    ):
        with pytest.raises(JobFailed, match=said) as caught:
            hooked.queue.send("h.typed", args, kwargs).result(PATIENCE)
        # a dead letter at once: it is the same however often it is tried
        assert (caught.value.type, caught.value.attempts) == ("rqueue.errors.BadArguments", 1)
        assert caught.value.why == "gave up"
    assert [line.partition(": ")[2] for line in hooked.said()] == ["BadArguments"] * 3


BROKEN = """
from contextlib import contextmanager
from rqueue import App, task
from rqueue.tasks.depends import Depends

@contextmanager
def lifespan(worker):
    raise ConnectionError("no database here")
    yield

app = App(lifespan=lifespan)

@task(name="b")
def b() -> None: ...
"""


def test_a_lifespan_that_fails_ends_the_pool_with_a_sentence(
    make_pool: Callable[..., Pool], tmp_path: Path, queue: Queue
) -> None:
    (tmp_path / "broken_lifespan.py").write_text(BROKEN)
    pool = make_pool(app=["broken_lifespan"], path=str(tmp_path), log_format="json", processes=2)
    assert pool.ended() == 1
    lines = [json.loads(line) for line in pool.log.splitlines() if line.startswith("{")]
    (message,) = [line["message"] for line in lines if "cannot begin" in line["message"]]
    first = message.splitlines()[0]
    assert "lifespan 'lifespan' failed, and the worker cannot begin: ConnectionError: no d" in first
    assert "broken_lifespan.py:8" in first


def test_the_page_about_hooks(
    workers: WorkerFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "hooks_page.py").write_text(blocks("hooks.md"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)  # where its table is
    monkeypatch.setenv("RQUEUE_URL", workers.url)
    monkeypatch.setenv("RQUEUE_NAMESPACE", workers.name)
    settings = Settings(url=workers.url, namespace=workers.name, lease_ms=600_000)
    with Queue("default", settings=settings) as queue:
        child = workers.child(app=("hooks_page",), queues=("default",), settings=settings)
        headers = Options(headers={"tenant": "acme"})
        order = {"number": 1, "total": "9.90"}
        for name, args, options, result in (
            ("invoice", [8], headers, "invoice 8 of acme"),
            ("charge", [9], Options(), "order 9 by a connection"),
            ("bill", [order, "2030-01-31T00:00:00"], Options(), "9.90 by 31.01.2030"),
        ):
            job = queue.send(f"hooks_page.{name}", args, options=options)
            assert job.result(PATIENCE) == result
        lost = queue.send("hooks_page.bill", [{"number": "x", "total": 1}])
        with pytest.raises(JobFailed, match=r"order\.number: Input should be a valid integer"):
            lost.result(PATIENCE)
        queue.send("shop.mirror").result(PATIENCE)
        with closing(sqlite3.connect(tmp_path / "shop.db")) as table:
            states = dict(table.execute("SELECT job, state FROM runs"))
            assert table.execute("SELECT error FROM runs WHERE job = ?", [lost.id]).fetchone() == (
                "rqueue.errors.BadArguments",
            )
        assert states.pop(lost.id) == "dead"
        assert [*states.values()] == ["done"] * 6, "also the three of the page are done"
        assert child.leave() == 0
        queue.redis.unlink(*list(queue.redis.scan_iter(f"{workers.name}:*", 1000)))
