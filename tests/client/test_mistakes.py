"""What newcomers write first, and the sentence that each of these mistakes gets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from typing import Any

import pytest

import rqueue
from rqueue import Call, Options, Queue, Rate, RetryPolicy, chain, chord, group, task
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._async.workflows import AsyncWorkflowHandle
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.other_words import (
    HANDLE_WORDS,
    METHOD_WORDS,
    MODULE_WORDS,
    OPTION_WORDS,
    QUEUE_WORDS,
    WORKFLOW_HANDLE_WORDS,
    WORKFLOW_WORDS,
)
from rqueue.tasks.registry import Registry
from rqueue.tasks.workflow import Chain, Chord, Group, Signature

Q: Any = Queue("mail", "redis://127.0.0.1:1")
AQ: Any = AsyncQueue("mail", "redis://127.0.0.1:1")
JOB: Any = JobHandle(Q, "j")
FLOW: Any = WorkflowHandle(Q, "w", ["w"], ["w"])
MINE = Registry()


@task(name="ok", registry=MINE, sender=Q)
def _ok(n: int = 0) -> int:
    return n


OK: Any = _ok
CHAIN: Any = chain
CHORD: Any = chord
GROUP: Any = group
RQUEUE: Any = rqueue


def plain(x: int) -> None: ...


def declared(**options: Any) -> Any:
    return task(registry=Registry(), **options)(plain)


def policy(**fields: Any) -> RetryPolicy:
    return RetryPolicy(**fields)


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    # a function that is no task
    (lambda: Q.enqueue(plain, 1), "function 'plain' is no task: put @task above it"),
    (lambda: Q.enqueue(lambda: 1), "is no task: put @task above it"),
    (lambda: Q.enqueue("x".upper), "function 'str.upper' is no task"),
    (lambda: Q.enqueue(_ok(1)), "task: 1 is neither a task nor a task's name"),
    (lambda: asyncio.run(AQ.enqueue(plain, 1)), "function 'plain' is no task: put @task above it"),
    (lambda: Q.send(OK, [1]), "is no name; pass it to enqueue, or its .name"),
    (lambda: Q.send("ok", 1), "args: 1 is not a list or tuple; one argument alone is [argument]"),
    (lambda: Q.send("ok", "ab"), "args: 'ab' is no list; pass ['ab']"),
    (lambda: task(3), "task: 3 is no function; options are named: @task(queue='mail')"),  # type: ignore[call-overload]
    (lambda: task("mail"), "options are named: @task(queue='mail')"),  # type: ignore[call-overload]
    (lambda: Q.enqueue_many([1]), "call: 1 is not a Call; pass Call(task, args, kwargs)"),
    (lambda: Q.enqueue_many([(OK, 1)]), "is not a Call; pass Call(task, args, kwargs)"),
    # retries
    (lambda: declared(retry=3), "3 is not a RetryPolicy; pass RetryPolicy(max_deliveries=4)"),
    (lambda: declared(retry=True), "True is not a RetryPolicy; pass RetryPolicy("),
    (lambda: OK.options(retry=3), "3 is not a RetryPolicy; pass RetryPolicy(max_deliveries=4)"),
    (lambda: declared(max_retries=3), "max_deliveries counts the first attempt too"),
    (lambda: declared(autoretry_for=(OSError,)), "retry=RetryPolicy(...) says when and after"),
    (lambda: declared(throws=(OSError,)), "give_up_on of a RetryPolicy names what is not tried"),
    (lambda: policy(max=3), "max: there is no such option of a RetryPolicy; max_deliveries"),
    (lambda: policy(interval=[1, 2]), "delay is in seconds, backoff says how it grows"),
    (lambda: policy(max_delivery=3), "did you mean max_deliveries?"),
    (lambda: OK.retry(), "task 'ok' has no attribute 'retry'; here it is raise Retry(after="),
    # later
    (lambda: OK.delay(5), "here it is enqueue(...) for now, enqueue_in(seconds, ...) for later"),
    (lambda: OK.apply_async((5,), countdown=60), "here it is enqueue(...); options stand before"),
    (lambda: OK.enqueue(5, countdown=60), "a call is delayed by enqueue_in(seconds, ...)"),
    (lambda: Q.enqueue(OK, 5, _defer_by=60), "a call is delayed by enqueue_in(seconds, ...)"),
    (lambda: Q.enqueue_in(60, OK), "a queue has no attribute 'enqueue_in'; here it is send(name"),
    (lambda: OK.enqueue_in("5m", 1), "'5m' is not a number of seconds; the task's arguments come"),
    (lambda: OK.enqueue_at(datetime(2030, 1, 1), 1), "has no time zone; use datetime.now(timezone"),
    (lambda: declared(time_limit="soon"), "time_limit: 'soon' is not a positive number of seconds"),
    # how many in a time
    (lambda: declared(rate_limit="10/m"), "such option of a task; ten in a minute are limit=Rate("),
    (
        lambda: declared(limit="10/m"),
        "is no Concurrency or Rate, nor a list of such; ten in a minu",
    ),
    (
        lambda: Rate("100/m"),
        "required argument: 'per'; ten in a minute are limit=Rate(10, per=\"1m\")",
    ),  # type: ignore[call-arg,arg-type]
    # where to, and what follows
    (lambda: OK.options(queue_name="x"), "queue_name: there is no such option of a call; it is ca"),
    (lambda: OK.options(priority=12), "priority: 12 is no whole number from 0 to 9"),
    (lambda: Q.enqueue(OK, 1, at_front=True), "it is called front"),
    (lambda: OK.options(depends_on="j"), "after=[job, ...] names the jobs that are waited for"),
    (lambda: OK.options(on_failure=plain), "is none of 'stop', 'continue', 'wait'"),
    (lambda: OK.signature(1), "no attribute 'signature'; here it is s(...), a call that is made"),
    (lambda: OK.options(link=OK.s()), "task.s(...).on_success(other.s()) says what follows a call"),
    (lambda: OK.options(link_error=OK.s()), "task.s(...).on_error(other.s()) says what follows"),
    (lambda: OK.map([1, 2]), "here it is group(task.s(x) for x in ...), or queue.enqueue_many([C"),
    (lambda: OK.starmap([(1, 2)]), "here it is group(task.s(x) for x in ...), or queue.enqueue_ma"),
    (lambda: OK.chunks([(1, 2)], 10), "here it is group(task.s(x) for x in ...), or queue.enqueue"),
    # calls that are made later
    (
        lambda: OK.s(1).delay(),
        "a workflow has no attribute 'delay'; here it is enqueue(), or await",
    ),
    (
        lambda: OK.s().apply_async((1,), countdown=5),
        "here it is enqueue(), or await aenqueue(); ar",
    ),
    (lambda: OK.s(1).set(queue="x"), "here it is task.options(...).s(...): options stand before"),
    (
        lambda: OK.s(1).options(queue="x"),
        "here it is task.options(...).s(...): options stand befor",
    ),
    (
        lambda: OK.s(1).enqueue_in(5),
        "here it is task.options(at=timedelta(...)).s(...), then enque",
    ),
    (lambda: OK.s(1).link(OK.s()), "here it is on_success(other.s()), of a call; or chain(first.s"),
    (lambda: OK.s(1).link_error(OK.s()), "here it is on_error(other.s()), of a call"),
    (
        lambda: OK.s(1).on_error(OK),
        "on_error: <Task 'ok' of queue 'mail'> is not a call: task.s(...",
    ),
    (lambda: OK.s(1)(), "workflow: it runs after .enqueue(); a task is called: task(...)"),
    (lambda: OK.s(1).enqueue(5), "enqueue: too many positional arguments; options stand before ea"),
    (
        lambda: OK.s(1).enqueue(countdown=5),
        "'countdown'; options stand before each call: task.opti",
    ),
    (lambda: OK.s(1).aenqueue(queue="x"), "'queue'; options stand before each call: task.options("),
    (lambda: OK.s(1).colour, "a workflow has no attribute 'colour'"),
    (lambda: OK.s(1) | OK, "chain: <Task 'ok' of queue 'mail'> is no call of a task: task.s(...)"),
    (lambda: OK | OK.s(1), "chain: <Task 'ok' of queue 'mail'> is no call of a task: task.s(...)"),
    (lambda: [OK.s(1)] | OK.s(1), "chain: a list is no call of a task; here it is chain(*calls)"),
    (lambda: CHAIN([OK.s(1), OK.s()]), "chain: a list is no call of a task; here it is chain(*cal"),
    (lambda: CHAIN(OK.s(1), queue="x"), "'queue'; here it is chain(first.s(1), second.s())"),
    (lambda: chain(OK.s(1))(), "workflow: it runs after .enqueue()"),
    (lambda: chain(OK.s(1)).apply_async(), "here it is enqueue(), or await aenqueue(); arguments"),
    (lambda: chain(OK.s(1)).on_error(OK.s()), "here it is on_error(other.s()) of each call in it"),
    (lambda: GROUP(OK.s(1), task=OK), "'task'; here it is group(task.s(1), task.s(2))"),
    (lambda: group(OK.s(1))(), "workflow: it runs after .enqueue()"),
    (
        lambda: group(chain(OK.s(1), group(OK.s(), OK.s()))),
        "group: a group in a group: write its m",
    ),
    (
        lambda: CHORD([OK.s(1)])(OK.s()),
        "'callback'; here it is chord([task.s(1), task.s(2)], callb",
    ),
    (lambda: CHORD([OK.s(1)], body=OK.s()), "here it is chord([task.s(1), task.s(2)], callback.s("),
    (lambda: CHORD([OK.s(1)], OK.s()).get(), "a workflow has no attribute 'get'; here it is enqu"),
    (lambda: Q.enqueue(OK.s(1)), "task: a workflow is enqueued by .enqueue(), or enqueue_workflow"),
    (lambda: FLOW.get(), "a workflow's handle has no attribute 'get'; here it is result(timeout)"),
    (lambda: FLOW.state(), "here it is [job.state() for job in workflow.jobs]"),
    # names of their packages
    (lambda: RQUEUE.signature("ok", (1,)), "rqueue has no 'signature'; here it is task.s(...)"),
    (lambda: RQUEUE.shared_task, "rqueue has no 'shared_task'; here it is task: @task above a fun"),
    (
        lambda: RQUEUE.send_task,
        "rqueue has no 'send_task'; here it is queue(name).enqueue('app.task'",
    ),
    (lambda: RQUEUE.create_pool, "has no 'create_pool'; here it is rqueue.configure(url), or RQ"),
    (
        lambda: RQUEUE.set_broker,
        "has no 'set_broker'; here it is rqueue.configure(url), or RQUEUE_",
    ),
    (lambda: RQUEUE.WorkerSettings, "here it is the options of 'rqueue worker', or its pool file"),
    (lambda: RQUEUE.Retry(defer=5), "argument 'defer'; write Retry(after=seconds)"),
    (lambda: OK.options(defer_until=5), "a call is enqueued for a time by enqueue_at(when, ...)"),
    (lambda: declared(serializer="pickle"), "arguments and results are JSON"),
    (lambda: OK.enqueue(object()), "object is not JSON; pass its id, or a dict of what the task"),
    # the job afterwards
    (lambda: JOB.get(), "a job's handle has no attribute 'get'; here it is result(timeout)"),
    (lambda: JOB.get_status(), "here it is state()"),
    (lambda: JOB.revoke(), "here it is cancel()"),
    (lambda: JOB.result(timeout="5"), "timeout: '5' is not a number of seconds, or None"),
    (lambda: Q.fetch_job("j"), "a queue has no attribute 'fetch_job'; here it is job(id)"),
    (lambda: AQ.get_jobs(), "here it is Inspector(url).jobs(queue), or 'rqueue jobs QUEUE'"),
    # where Redis is
    (lambda: Queue("redis://u:secret@h/0"), "is a URL: Queue(name, url)"),
    (lambda: Queue("a", connection=1), "connection: there is no such option of a queue; url says"),  # type: ignore[call-arg]
    (lambda: rqueue.configure(broker_url="redis://h"), "broker_url: there is no such option of rq"),  # type: ignore[call-arg]
    (lambda: Options(job_id="7"), "job_id: there is no such option of a job; it is called id"),  # type: ignore[call-arg]
    (lambda: Call(OK, {"n": 1}).resolve(), "is not a list or tuple"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_each_mistake_gets_its_sentence(call: Callable[[], Any], said: str) -> None:
    with pytest.raises((rqueue.RQueueError, AttributeError, ImportError)) as caught:
        call()
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_no_word_of_others_hides_one_of_ours() -> None:
    assert not [name for name in METHOD_WORDS if hasattr(BoundTask, name)]
    assert not [name for name in QUEUE_WORDS if hasattr(Queue, name) or hasattr(AsyncQueue, name)]
    for handle in (JobHandle, AsyncJobHandle):
        assert not [name for name in HANDLE_WORDS if hasattr(handle, name)]
    for workflow in (Signature, Chain, Group, Chord):
        fields = {*workflow.__dataclass_fields__}
        others = [name for name in WORKFLOW_WORDS if hasattr(workflow, name) or name in fields]
        assert set(others) <= {"on_success", "on_error"}  # those that chains and groups have not
    for handle in (WorkflowHandle, AsyncWorkflowHandle):
        assert not [name for name in WORKFLOW_HANDLE_WORDS if name in vars(handle)]
    assert not MODULE_WORDS.keys() & {*rqueue.__all__}
    assert not [name for name in MODULE_WORDS if find_spec(f"rqueue.{name}")]
    assert not OPTION_WORDS.keys() & {"queue", "id", "priority", "ttl", "keep", "retry", "cron"}


def test_the_import_of_a_name_of_theirs_names_ours() -> None:
    with pytest.raises(ImportError, match=r"rqueue has no 'signature'; here it is task\.s"):
        exec("from rqueue import signature")


def test_what_is_there_is_found_as_before() -> None:
    assert Q.name == "mail" and JOB.id == "j"
    assert not hasattr(Q, "colour")
    with pytest.raises(AttributeError, match=r"^a queue has no attribute 'colour'$"):
        _ = Q.colour
