"""Checked by mypy, never run: it must refuse the lines marked `# error: <code>`, and no others."""

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, assert_type

from rqueue import AsyncJobHandle, Cancellation, JobHandle
from rqueue.model.job import JobState
from rqueue.tasks.decorator import task
from rqueue.tasks.task import AsyncTask, SyncTask
from rqueue.tasks.workflow import Signature
from rqueue.testing import Harness
from tests.support.patience import PATIENCE


@task
def add(a: int, b: int = 0) -> int:
    return a + b


@task(queue="mail", priority=7)
def welcome(user: str, *, language: str) -> None: ...


@task
async def fetch(url: str) -> bytes:
    return url.encode()


@task(time_limit=3)
async def ping() -> float:
    return 1.0


# what is right
assert_type(add(1, 2), int)
assert_type(add.enqueue(1, b=2), JobHandle[int])
assert_type(add.enqueue(1).result(PATIENCE), int)
assert_type(add.options(priority=9).enqueue(1), JobHandle[int])
assert_type(add.enqueue_in(1.5, 1, 2), JobHandle[int])
assert_type(add.enqueue_at(timedelta(hours=1), 1), JobHandle[int])
coroutine: Coroutine[Any, Any, bytes] = fetch("x")
assert_type(fetch.enqueue("x"), JobHandle[bytes])
assert_type(ping.enqueue().result(), float)
welcome.enqueue("ann", language="fr")
assert_type(add.enqueue(1).cancel(), Cancellation)
assert_type(add.enqueue(1).cancel(held=False), Cancellation)
assert_type(add.enqueue(1).state(), JobState)
assert_type(add.enqueue(1).handed_to, str)


def start() -> JobHandle[int]:
    return add.enqueue(1, 2)


async def astart() -> AsyncJobHandle[int]:
    return await add.aenqueue(1, 2)


def of_some_number() -> JobHandle[float]:
    return add.enqueue(1, 2)


async def web() -> None:
    assert_type(await fetch("x"), bytes)
    handle = await fetch.aenqueue("x")
    assert_type(handle, AsyncJobHandle[bytes])
    assert_type(await handle.result(), bytes)
    assert_type(await handle.cancel(), Cancellation)
    assert_type(await handle.state(), JobState)
    assert_type(await add.aenqueue_in(1, 2), AsyncJobHandle[int])
    await add.aenqueue("x")  # error: arg-type
    await add.options(priority=1).aenqueue()  # error: call-arg
    await add.aenqueue_at(timedelta(1), 1, c=2)  # error: call-arg


# what is wrong
add("x")  # error: arg-type
add.enqueue("x")  # error: arg-type
add.enqueue()  # error: call-arg
add.enqueue(1, 2, 3)  # error: call-arg
add.enqueue(1, c=2)  # error: call-arg
add.options(priority=9).enqueue("x")  # error: arg-type
add.options(prio=9)  # error: call-arg
add.delay(5, 1, 2)  # error: attr-defined
add.options(limit=3)  # error: arg-type
add.enqueue_in("soon", 1)  # error: arg-type
add.enqueue_in(5, "x")  # error: arg-type
add.enqueue_at(timedelta(1), "x")  # error: arg-type
welcome.enqueue("ann")  # error: call-arg
welcome.enqueue("ann", "fr")  # error: call-arg
fetch.enqueue(1)  # error: arg-type
text: str = add.enqueue(1).result()  # error: assignment

sync_task: SyncTask[[str], int] = add  # error: assignment
async_task: AsyncTask[[str], bytes] = fetch


# a call of a workflow has all arguments, or all but the first, which the call before it gives
assert_type(add.s(1, 2), Signature[int])
assert_type(add.s(2), Signature[int])
assert_type(add.s(b=2), Signature[int])
assert_type(fetch.s(), Signature[bytes])
welcome.s(language="fr")
welcome.si("ann", language="fr")
add.s("x", 3)  # error: call-overload
add.s(1, 2, 3)  # error: call-overload
add.s(c=1)  # error: call-overload
welcome.s()  # error: call-overload
welcome.si(language="fr")  # error: call-arg


# the test kit
async def test_it(rqueue: Harness) -> None:
    assert_type(rqueue.run_job(add, 1, 2), int)
    assert_type(rqueue.run_attempt(3, fetch, "x"), bytes)
    assert_type(await rqueue.arun_job(fetch, "x"), bytes)
    rqueue.run_job(add, "x")  # error: arg-type
    rqueue.run_job(add, 1, c=2)  # error: call-arg
    await rqueue.arun_attempt(2, fetch)  # error: call-arg
