"""Checked by mypy, never run: it must refuse the lines marked `# error: <code>`, and no others."""

from typing import Any, assert_type

from rqueue import (
    AsyncJobHandle,
    AsyncPutHandle,
    AsyncQueue,
    Call,
    Cancellation,
    Consumer,
    Delivery,
    GrantCredit,
    JobHandle,
    PutHandle,
    Queue,
    SharedCredit,
    WindowCredit,
    aqueue,
    connect,
    queue,
    task,
)
from rqueue.tasks.enqueuer import AsyncEnqueuer, Enqueuer
from tests.support.patience import PATIENCE


@task
def add(a: int, b: int = 0) -> int:
    return a + b


@task
async def fetch(url: str) -> bytes:
    return url.encode()


# what is right
mail = Queue("mail")
assert_type(connect("redis://localhost"), Queue)
assert_type(queue("mail"), Queue)
assert_type(mail.enqueue(add, 1, b=2), JobHandle[int])
assert_type(mail.enqueue(add, 1).result(PATIENCE), int)
assert_type(mail.enqueue(fetch, "x").result(), bytes)
assert_type(mail.enqueue(add.options(priority=9), 1), JobHandle[int])
assert_type(mail.enqueue("other.task", 1, x=2), JobHandle[Any])
assert_type(mail.enqueue_many([Call(add, (1,)), Call("t")]), list[JobHandle[Any]])
sender: Enqueuer = mail
handle: JobHandle[int] = mail.enqueue(add, 1)
assert_type(handle.cancel(), Cancellation)

with mail.putter(limit=10) as putter:
    assert_type(putter.put(add, 1), PutHandle[int])
    assert_type(putter.put(add, 1).result(), int)
    handle = putter.put(add, 1)
    assert_type(putter.flush(5), bool)
    sender = putter
    assert_type(add.options(sender=putter).enqueue(1), JobHandle[int])

with mail.consumer(jobs=5) as consumer:
    assert_type(consumer, Consumer)
    assert_type(consumer.pull(), list[Delivery])
mail.consumer(credit=WindowCredit(5))
mail.consumer(credit=GrantCredit(5, 1000))
mail.consumer(credit=SharedCredit(5))


async def web() -> None:
    async with AsyncQueue("mail") as box:
        assert_type(await box.enqueue(add, 1, b=2), AsyncJobHandle[int])
        assert_type(await (await box.enqueue(fetch, "x")).result(), bytes)
        assert_type(await box.enqueue("other.task", 1), AsyncJobHandle[Any])
        async_sender: AsyncEnqueuer = box
        async_handle: AsyncJobHandle[int] = await box.enqueue(add, 1)
        async_handle = await add.aenqueue(1)
        assert_type(await async_handle.cancel(), Cancellation)
        print(async_sender, async_handle)
        async with box.putter() as put:
            assert_type(await put.put(add, 1), AsyncPutHandle[int])
            await put.put(add, "x")  # error: call-overload
        async with box.consumer() as own:
            assert_type(await own.pull(), list[Delivery])
            async for jobs in own.drain():
                assert_type(jobs, list[Delivery])
        await box.enqueue(add, "x")  # error: call-overload
        await box.enqueue(add)  # error: call-overload
    assert_type(aqueue("mail"), AsyncQueue)


# what is wrong
mail.enqueue(add, "x")  # error: call-overload
mail.enqueue(add)  # error: call-overload
mail.enqueue(add, 1, c=2)  # error: call-arg
mail.enqueue(fetch, 1)  # error: call-overload
putter.put(add, "x")  # error: call-overload
putter.put(add, 1, 2, 3)  # error: call-overload
mail.consumer(credit=5)  # error: arg-type
text: str = mail.enqueue(add, 1).result()  # error: assignment
