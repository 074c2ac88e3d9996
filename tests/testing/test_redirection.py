"""Whatever queue a program has, and whatever thread it enqueues in: it is in memory; jobs that run
where they are enqueued."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import flask
import pytest

import rqueue as rq
from rqueue import Options, Queue, RetryPolicy, task
from rqueue.client import default_queues
from rqueue.contrib.flask import Rqueue
from rqueue.inspector.inspector import Inspector
from rqueue.testing import Harness, in_memory
from rqueue.transport import stand_in

Recorder = Callable[..., Any]

NOWHERE = "redis://127.0.0.1:1/0"
"""Where no server is: what is sent there fails."""


def test_any_queue_of_the_program_is_in_memory(
    tasks: None, no_defaults: Any, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    """By its own URL, made before or inside; by settings; by an open client; of any namespace."""
    record = recorder(queue="q")
    before = Queue("own", NOWHERE, namespace="theirs")
    default_queues.configure(NOWHERE)
    with in_memory() as queues:
        before.enqueue(record, 1)
        Queue("new", NOWHERE).enqueue(record, 2)
        record.enqueue(3)
        default_queues.configure(NOWHERE)  # as the factory of an application does
        record.enqueue(4)
        with Inspector(NOWHERE) as inspector:
            assert inspector.queue_names() == ["new", "q"]
        assert sorted(job.args[0] for job in queues.enqueued()) == [1, 2, 3, 4]
        assert queues.drain().ran == 4
    assert not stand_in.name_of()
    with pytest.raises(rq.RedisUnavailable):
        before.enqueue(record, 5)
    with in_memory() as queues:
        assert queues.enqueued() == []


def test_a_view_of_flask_enqueues_here(queues: Harness, recorder: Recorder) -> None:
    record = recorder(queue="mail")
    app = flask.Flask("shop")
    app.config["RQUEUE_URL"] = NOWHERE
    Rqueue(app)

    @app.post("/signup")
    def signup() -> str:
        record.enqueue(flask.request.form["email"])
        return "ok"

    assert app.test_client().post("/signup", data={"email": "a@b.c"}).text == "ok"
    queues.assert_enqueued(record, args=["a@b.c"])
    assert queues.drain().ran == 1


def test_other_threads_enqueue_here_too(
    queues: Harness, recorder: Recorder, done: list[Any]
) -> None:
    record = recorder(queue="q")
    threads = [
        threading.Thread(target=lambda n=n: [record.enqueue(n, i) for i in range(20)])
        for n in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert queues.drain().ran == 100
    assert len(done) == 100


@pytest.mark.rqueue(inline=True)
def test_inline_runs_at_enqueue(
    tasks: None, no_defaults: Any, rqueue: Harness, done: list[Any]
) -> None:
    @task(queue="q", retry=RetryPolicy(delay=60, jitter=0))
    def call(what: Any) -> Any:
        done.append(what)
        if what == "fail":
            raise FileNotFoundError("inline")
        if what == "more":
            call.enqueue("again")
        return what

    assert call.enqueue((1, 2)).result(timeout=1) == [1, 2]
    with pytest.raises(rq.NotEncodable):
        call.enqueue(b"x")
    with pytest.raises(FileNotFoundError, match="inline"):
        call.enqueue("fail")
    call.enqueue_in(30, "later")
    rqueue.assert_enqueued(call, args=["later"], in_=30)
    call.enqueue("more")
    assert done == [[1, 2], "fail", "more", "again"]
    default_queues.queue("q").enqueue_many([rq.Call(call, ["one"]), rq.Call(call, ["two"])])
    assert done[4:] == ["one", "two"]

    async def in_a_loop() -> None:
        await call.aenqueue("async")

    asyncio.run(in_a_loop())
    assert done[-1] == "async"
    rq.queue("q").send(call.name, ["sent"], None, Options(priority=1))
    with rq.queue("q").transaction() as tx:
        tx.enqueue(call, "committed")
    assert done[-2:] == ["sent", "committed"]
    rqueue.travel("30s", raises=False)
    assert "later" in done
