"""Whatever error Redis answers, to whatever call: it comes out as the right one of ours."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import redis

import rqueue
from rqueue import errors
from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.put_handle import AsyncPutHandle
from rqueue.client._async.putter import AsyncBackgroundPuts
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.put_handle import PutHandle
from rqueue.client._sync.putter import BackgroundPuts
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Inspector
from rqueue.inspector.doctor.doctor import Doctor
from rqueue.protocol.job_packer import Call
from tests.client.every_call import (
    CONSUMER,
    DOCTOR,
    HANDLE,
    INSPECTOR,
    OF_SCRIPTS,
    QUEUE,
    QUIET,
    REPLIES,
)
from tests.support.patience import PATIENCE
from tests.support.stub_server import StubServer

pytestmark = pytest.mark.usefixtures("no_long_pauses")


@pytest.mark.parametrize(
    ("kind", "tried"),
    [
        (Queue, QUEUE),
        (AsyncQueue, QUEUE),
        (Consumer, CONSUMER),
        (AsyncConsumer, CONSUMER),
        (JobHandle, HANDLE),
        (AsyncJobHandle, HANDLE),
        (PutHandle, HANDLE),
        (AsyncPutHandle, HANDLE),
        (BackgroundPuts, {}),
        (AsyncBackgroundPuts, {}),
        (Inspector, INSPECTOR),
        (Doctor, DOCTOR),
    ],
)
def test_every_public_call_is_tried_here(kind: type, tried: dict[str, object]) -> None:
    public = {
        name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))
    }
    assert public == set(tried) | QUIET[kind]


@pytest.fixture(params=REPLIES)
def refusing(request: pytest.FixtureRequest) -> Iterator[StubServer]:
    with StubServer(f"-{request.param}\r\n".encode()) as stub:
        yield stub


@pytest.fixture
def expected(refusing: StubServer) -> type[errors.RQueueError]:
    return REPLIES[refusing.reply.decode()[1:].strip()]


def kind_of(action: Callable[[], object]) -> type[BaseException]:
    """The class of what an action raises."""
    try:
        found = action()
    except Exception as error:
        assert getattr(error, "outcome_unknown", False) is False
        return type(error)
    raise AssertionError(f"nothing was raised, but returned: {found!r}")


async def akind_of(action: Callable[[], Any]) -> type[BaseException]:
    try:
        found = await action()
    except Exception as error:
        assert getattr(error, "outcome_unknown", False) is False
        return type(error)
    raise AssertionError(f"nothing was raised, but returned: {found!r}")


def of_script(expected: type[errors.RQueueError]) -> type[errors.RQueueError]:
    return errors.ScriptError if expected is OF_SCRIPTS else expected


def bare(expected: type[errors.RQueueError]) -> type[errors.RQueueError]:
    """Of a command that is about no queue, or no script."""
    return errors.CommandRefused if expected is errors.QueueDamaged else expected


def test_the_client(refusing: StubServer, expected: type[errors.RQueueError]) -> None:
    with Queue("q", refusing.url) as queue:
        found = {name: kind_of(lambda call=call: call(queue)) for name, call in QUEUE.items()}
        job = queue.job("x")
        found |= {name: kind_of(lambda call=call: call(job)) for name, call in HANDLE.items()}
    assert set(found.values()) == {of_script(expected)}, found


def test_the_asyncio_client(refusing: StubServer, expected: type[errors.RQueueError]) -> None:
    async def work() -> dict[str, type[BaseException]]:
        async with AsyncQueue("q", refusing.url) as queue:
            found = {}
            for name, call in QUEUE.items():
                if name != "enqueue_request":  # it is what `enqueue` calls
                    found[name] = await akind_of(lambda call=call: call(queue))  # type: ignore[misc]
            for name, handled in HANDLE.items():
                job = queue.job("x")
                found[name] = await akind_of(lambda call=handled, job=job: call(job))  # type: ignore[misc]
            return found

    found = asyncio.run(work())
    assert set(found.values()) == {of_script(expected)}, found


REGISTERED = b"*3\r\n:1700000000000\r\n$1\r\n1\r\n$10\r\ninterested\r\n"


def only_ends_the_wait(refusal: bytes) -> bool:
    """A client that gets it waits again, over a new connection."""
    return b"UNBLOCKED" in refusal or b"max number of clients" in refusal


def test_a_consumer(refusing: StubServer, expected: type[errors.RQueueError]) -> None:
    refusal = refusing.reply
    with Queue("q", refusing.url) as queue:
        for name, call in CONSUMER.items():
            consumer = queue.consumer(renew=False)
            refusing.reply = REGISTERED
            consumer.register()
            refusing.reply = refusal
            if name == "wait" and only_ends_the_wait(refusal):
                assert consumer.wait(5) == []
            else:
                kind = kind_of(lambda call=call, consumer=consumer: call(consumer))
                assert kind is (bare(expected) if name == "wait" else of_script(expected)), name
            with suppress(errors.RQueueError):
                consumer.close()
        consumer = queue.consumer(renew=False)
        assert kind_of(consumer.register) is of_script(expected)
        consumer.close()


def test_an_asyncio_consumer(refusing: StubServer, expected: type[errors.RQueueError]) -> None:
    refusal = refusing.reply

    async def work() -> None:
        async with AsyncQueue("q", refusing.url) as queue:
            for name, call in CONSUMER.items():
                consumer = queue.consumer(renew=False)
                refusing.reply = REGISTERED
                await consumer.register()
                refusing.reply = refusal
                if name == "wait" and only_ends_the_wait(refusal):
                    assert await consumer.wait(5) == []
                else:
                    kind = await akind_of(lambda call=call, consumer=consumer: call(consumer))
                    assert kind is (bare(expected) if name == "wait" else of_script(expected)), name
                with suppress(errors.RQueueError):
                    await consumer.close()
            consumer = queue.consumer(renew=False)
            assert await akind_of(consumer.register) is of_script(expected)
            await consumer.close()

    asyncio.run(work())


def test_an_inspector_and_the_doctor(
    refusing: StubServer, expected: type[errors.RQueueError]
) -> None:
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    with redis.Redis.from_url(refusing.url, retry=retry) as client:
        inspector = Inspector(redis=client)
        for name, call in INSPECTOR.items():
            kind = kind_of(lambda call=call: call(inspector))
            assert kind in (bare(expected), of_script(expected)), name
        doctor = inspector.doctor()
        for name, checked in DOCTOR.items():
            if name == "check_service" and expected is errors.QueueDamaged:
                assert checked(doctor) == []  # `check_queue` says it
                continue
            kind = kind_of(lambda call=checked: call(doctor))
            assert kind in (bare(expected), of_script(expected)), name


def test_connect(refusing: StubServer, expected: type[errors.RQueueError]) -> None:
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    with redis.Redis.from_url(refusing.url, retry=retry) as client:
        try:
            assert kind_of(lambda: rqueue.connect(redis=client)) is bare(expected)
        finally:
            rqueue.disconnect()


def test_a_greeting_that_is_refused(
    refusing: StubServer, expected: type[errors.RQueueError]
) -> None:
    """One that asks for patience or for a login is raised at once; a client that may not say HELLO
    may do all the same."""
    refusing.greeting = refusing.reply
    with Queue("q", refusing.url) as queue:
        assert kind_of(queue.pause) is of_script(expected)


def test_background_puts(refusing: StubServer, expected: type[errors.RQueueError]) -> None:
    with Queue("q", refusing.url) as queue:
        putter = queue.putter()
        reported: list[Exception] = []
        putter.add_error_listener(lambda error, _puts: reported.append(error))
        handle = putter.put("t")
        if issubclass(expected, errors.RedisUnavailable):
            assert not handle.wait_stored(0.2)
            assert reported == []
            assert putter.failed == 0
            refusing.reply = b"*4\r\n:1\r\n:1\r\n*0\r\n$0\r\n\r\n"
            assert putter.flush(10)
            assert handle.stored
        else:
            with pytest.raises(of_script(expected)):
                handle.wait_stored(PATIENCE)
            assert [type(error) for error in reported] == [of_script(expected)]
        putter.close()


def test_background_puts_of_asyncio(
    refusing: StubServer, expected: type[errors.RQueueError]
) -> None:
    async def work() -> None:
        async with AsyncQueue("q", refusing.url) as queue:
            putter = queue.putter()
            handle = await putter.put("t")
            if issubclass(expected, errors.RedisUnavailable):
                assert not await handle.wait_stored(0.2)
                refusing.reply = b"*4\r\n:1\r\n:1\r\n*0\r\n$0\r\n\r\n"
                assert await putter.flush(10)
                assert handle.stored
            else:
                with pytest.raises(of_script(expected)):
                    await handle.wait_stored(PATIENCE)
            await putter.close()

    asyncio.run(work())


def test_a_confirmed_enqueue(refusing: StubServer, expected: type[errors.RQueueError]) -> None:
    confirmed = rqueue.Options(replicas=1, fsync=True)
    with Queue("q", refusing.url) as queue:
        assert kind_of(lambda: queue.send("t", options=confirmed)) is of_script(expected)
        batch = [Call("t", options=confirmed)]
        assert kind_of(lambda: queue.enqueue_many(batch)) is of_script(expected)
