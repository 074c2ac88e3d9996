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
from rqueue.model.job import Delivery
from rqueue.protocol import repeats
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.job_packer import Call
from tests.support.stub_server import StubServer

REPLIES: dict[str, type[errors.RQueueError]] = {
    "LOADING Redis is loading the dataset in memory": errors.RedisLoading,
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL.": errors.RedisBusy,
    "INPROG Failover in progress": errors.RedisBusy,
    "TRYAGAIN Multiple keys request during rehashing of slot": errors.RedisBusy,
    "ASK 5718 127.0.0.1:7001": errors.RedisBusy,
    "CLUSTERDOWN Hash slot not served": errors.RedisBusy,
    "NOSCRIPT No matching script. Please use EVAL.": errors.RedisBusy,
    "READONLY You can't write against a read only replica.": errors.RedisReadOnly,
    "MASTERDOWN Link with MASTER is down": errors.RedisReadOnly,
    "NOREPLICAS Not enough good replicas to write.": errors.RedisReadOnly,
    "MISCONF Redis is configured to save RDB snapshots, but": errors.RedisReadOnly,
    "UNBLOCKED force unblock from blocking operation": errors.RedisReadOnly,
    "OOM command not allowed when used memory > 'maxmemory'.": errors.RedisOutOfMemory,
    "MOVED 5718 127.0.0.1:7001": errors.WrongServer,
    "CROSSSLOT Keys in request don't hash to the same slot": errors.WrongServer,
    "NOPROTO unsupported protocol version": errors.WrongServer,
    "ERR unknown command 'EVALSHA', with args beginning with:": errors.WrongServer,
    "ERR DB index is out of range": errors.WrongServer,
    "NOAUTH Authentication required.": errors.AuthenticationFailed,
    "WRONGPASS invalid username-password pair or user is disabled.": errors.AuthenticationFailed,
    "NOPERM User app has no permissions to run the 'evalsha' command": errors.AuthenticationFailed,
    "NOPERM No permissions to access a key": errors.AuthenticationFailed,
    "DENIED Redis is running in protected mode": errors.AuthenticationFailed,
    "ERR max number of clients reached": errors.ConnectionLost,
    "EXECABORT Transaction discarded because of previous errors.": errors.CommandRefused,
    "WRONGTYPE Operation against a key holding the wrong kind of value": errors.QueueDamaged,
    "ERR nobody knows this one": errors.CommandRefused,
    "ODD nor this one": errors.CommandRefused,
}

OF_SCRIPTS = errors.CommandRefused
"""What a script call makes a ScriptError of."""

JOB = Delivery(b"x", b"1,0;{}")

QUEUE: dict[str, Callable[[Queue], object]] = {
    "send": lambda q: q.send("t"),
    "enqueue": lambda q: q.enqueue("t"),
    "enqueue_request": lambda q: rqueue.task(name="t", sender=q, registry=rqueue.Registry())(
        _nothing
    ).enqueue(),
    "enqueue_many": lambda q: q.enqueue_many([Call("t"), Call("t")]),
    "enqueue_puts": lambda q: q.enqueue_puts([Put("x", b"{}")]),
    "counts": lambda q: q.counts(),
    "cancel": lambda q: q.cancel("x"),
    "promote": lambda q: q.promote("x"),
    "promote_all": lambda q: q.promote_all(),
    "set_priority": lambda q: q.set_priority("x", 9),
    "move_to_front": lambda q: q.move_to_front("x"),
    "pause": lambda q: q.pause(),
    "resume": lambda q: q.resume(),
    "configure": lambda q: q.configure(priorities=5),
}
HANDLE: dict[str, Callable[[Any], object]] = {
    "state": lambda job: job.state(),
    "result": lambda job: job.result(1),
    "cancel": lambda job: job.cancel(),
}
CONSUMER: dict[str, Callable[[Any], object]] = {
    "pull": lambda c: c.pull(),
    "settle": lambda c: c.settle(ack=["x"], pull=True),
    "interest": lambda c: c.interest(1),
    "grant": lambda c: c.grant(1),
    "stop": lambda c: c.stop(),
    "flush": lambda c: c.flush(),
    "drain": lambda c: _all(c.drain()),
    "ack": lambda c: c.ack(JOB),
    "retry": lambda c: c.retry(JOB),
    "release": lambda c: c.release(JOB),
    "reject": lambda c: c.reject(JOB, "why"),
    "wait": lambda c: c.wait(5),
    "receive": lambda c: c.receive(5),
    "rejoin": lambda c: c.rejoin(),
    "close": lambda c: c.close(),
}
INSPECTOR: dict[str, Callable[[Inspector], object]] = {
    "queue_names": lambda i: i.queue_names(),
    "queues": lambda i: i.queues(),
    "queue": lambda i: i.queue("q"),
    "require_queue": lambda i: i.require_queue("q"),
    "purge": lambda i: i.purge("q"),
    "jobs": lambda i: i.jobs("q"),
    "all_jobs": lambda i: list(i.all_jobs("q")),
    "job": lambda i: i.job("x"),
    "consumers": lambda i: i.consumers("q"),
    "dead": lambda i: list(i.dead("q")),
    "requeue_dead": lambda i: i.requeue_dead("q"),
    "purge_dead": lambda i: i.purge_dead("q"),
    "history": lambda i: list(i.history("q")),
    "last_rows": lambda i: i.last_rows("q", 5),
    "follow_history": lambda i: next(i.follow_history("q")),
    "stats": lambda i: i.stats("q", wait=lambda _seconds: None),
}
DOCTOR: dict[str, Callable[[Doctor], object]] = {
    "check": lambda d: d.check(),
    "check_server": lambda d: d.check_server(),
    "check_queue": lambda d: d.check_queue("q"),
    "check_service": lambda d: d.check_service("q"),
    "heal": lambda d: d.heal("q"),
}

QUIET = {
    Queue: {"at", "close", "consumer", "envelope", "job", "putter"},
    AsyncQueue: {"at", "close", "consumer", "envelope", "job", "putter"},
    Consumer: {"hear", "register"},
    AsyncConsumer: {"hear", "register"},
    JobHandle: set(),
    AsyncJobHandle: set(),
    PutHandle: {"wait_stored"},
    AsyncPutHandle: {"wait_stored"},
    BackgroundPuts: {"add_error_listener", "add_listener", "close", "enqueue_request", "flush"}
    | {"put", "put_call"},
    AsyncBackgroundPuts: {"add_error_listener", "add_listener", "close", "enqueue_request", "flush"}
    | {"put", "put_call"},
    Inspector: {"close", "doctor", "keys"},
    Doctor: {"repair"},
}
"""What sends nothing, or is tried by a test of its own below."""


def _nothing() -> None:
    """A task."""


def _all(batches: Any) -> object:
    async def collect() -> list[Any]:
        return [batch async for batch in batches]

    return collect() if hasattr(batches, "__anext__") else list(batches)


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


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "LONGEST_PAUSE_S", 0.001)


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
    """Whoever is told so waits again, over a new connection."""
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
    """What waits, or wants a login, is told at once; who may not say HELLO may do all the same."""
    refusing.greeting = refusing.reply
    with Queue("q", refusing.url) as queue:
        assert kind_of(queue.pause) is of_script(expected)


def test_background_puts(refusing: StubServer, expected: type[errors.RQueueError]) -> None:
    with Queue("q", refusing.url) as queue:
        putter = queue.putter()
        told: list[Exception] = []
        putter.add_error_listener(lambda error, _puts: told.append(error))
        handle = putter.put("t")
        if issubclass(expected, errors.RedisUnavailable):
            assert not handle.wait_stored(0.2)
            assert told == []
            assert putter.failed == 0
            refusing.reply = b"*4\r\n:1\r\n:1\r\n*0\r\n$0\r\n\r\n"
            assert putter.flush(10)
            assert handle.stored
        else:
            with pytest.raises(of_script(expected)):
                handle.wait_stored(10)
            assert [type(error) for error in told] == [of_script(expected)]
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
                    await handle.wait_stored(10)
            await putter.close()

    asyncio.run(work())


# -- an answer that was lost stays lost ------------------------------------------------------------


@pytest.fixture(
    params=[
        said
        for said, error in REPLIES.items()
        if error not in (OF_SCRIPTS, errors.QueueDamaged, errors.ConnectionLost)
        # not of the server, or lost as well
    ]
)
def forgetful(request: pytest.FixtureRequest) -> Iterator[StubServer]:
    """Loses one answer, and refuses everything from then on: a server that died and came back."""
    with StubServer(f"-{request.param}\r\n".encode()) as stub:
        yield stub


def test_a_refusal_after_a_lost_answer_leaves_the_outcome_open(forgetful: StubServer) -> None:
    with Queue("q", forgetful.url) as queue:
        calls = {name: (lambda call=call: call(queue)) for name, call in QUEUE.items()}
        job = queue.job("x")
        calls |= {f"job.{name}": (lambda call=call: call(job)) for name, call in HANDLE.items()}
        for name, action in calls.items():
            forgetful.lose = 1
            with pytest.raises(errors.ConnectionLost) as caught:
                action()
            assert caught.value.outcome_unknown, name
            assert forgetful.lose == 0


def test_the_same_of_the_asyncio_client(forgetful: StubServer) -> None:
    async def work() -> None:
        async with AsyncQueue("q", forgetful.url) as queue:
            for name, call in QUEUE.items():
                if name != "enqueue_request":
                    forgetful.lose = 1
                    with pytest.raises(errors.ConnectionLost) as caught:
                        await call(queue)  # type: ignore[arg-type, misc]
                    assert caught.value.outcome_unknown, name

    asyncio.run(work())


def test_the_same_of_background_puts(forgetful: StubServer) -> None:
    """What is given up for good after a lost answer may be stored: who hears of it is told so."""
    refusal = REPLIES[forgetful.reply.decode()[1:].strip()]
    if issubclass(refusal, errors.RedisUnavailable):
        return  # that is waited for, and the jobs are kept
    forgetful.lose = 1
    with Queue("q", forgetful.url) as queue:
        putter = queue.putter()
        with pytest.raises(errors.ConnectionLost) as caught:
            putter.put("t").wait_stored(10)
        assert caught.value.outcome_unknown
        putter.close()


def test_the_same_of_an_inspector(forgetful: StubServer) -> None:
    """Its connections are redis-py's, which repeats by itself."""
    with Inspector(forgetful.url) as inspector:
        forgetful.lose = 1
        with pytest.raises(errors.ConnectionLost) as caught:
            inspector.queue("q")
        assert caught.value.outcome_unknown


def test_what_was_never_sent_was_not_done() -> None:
    with Queue("q", "redis://127.0.0.1:1/0") as queue:
        with pytest.raises(errors.ConnectionLost) as caught:
            queue.pause()
        assert not caught.value.outcome_unknown
