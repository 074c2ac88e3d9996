"""Tasks for the tests of the worker process. They speak to the test over lists in Redis."""

import asyncio
import os
import sys
import threading
from typing import Any

import redis

from rqueue.errors import SoftTimeLimit
from rqueue.tasks import context
from rqueue.tasks.control import Reject, Retry, Snooze
from rqueue.tasks.decorator import task
from rqueue.tasks.retry import RetryPolicy

_local = threading.local()


def server() -> redis.Redis:
    """One connection for each thread and process."""
    if getattr(_local, "pid", 0) != os.getpid():
        _local.pid = os.getpid()
        _local.client = redis.Redis.from_url(os.environ["CHILD_TEST_URL"], socket_timeout=None)
    return _local.client


def say(key: str, value: object) -> None:
    server().rpush(key, str(value))


def await_go(key: str) -> None:
    server().blpop([key + ":go"], 50)


@task(name="c.noop")
def noop() -> None:
    pass


@task(name="c.push")
def push(key: str, value: object, seconds: float = 0) -> None:
    say(key, value)
    if seconds:
        threading.Event().wait(seconds)


_notes: dict[str, int] = {}


@task(name="c.note")
def note(path: str, number: int) -> None:
    """One line in a file, in some microseconds."""
    if path not in _notes:
        _notes[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(_notes[path], b"%d\n" % number)


@task(name="c.note_and_nap")
def note_and_nap(path: str, number: int, seconds: float) -> None:
    """One line in a file, and then some time."""
    note(path, number)
    threading.Event().wait(seconds)


@task(name="c.echo")
def echo(value: Any) -> Any:
    return value


@task(name="c.gate")
def gate(key: str, value: object = "in") -> str:
    """Runs until the test lets it."""
    say(key, value)
    await_go(key)
    return "through"


@task(name="c.agate")
async def agate(key: str, value: object = "in") -> str:
    say(key, value)
    try:
        while not server().lpop(key + ":go"):
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        say(key, "cancelled")
        raise
    return "through"


@task(name="c.early", ack="early")
def early(key: str) -> str:
    """As `c.gate`, but acked before it begins."""
    return gate.function(key)


@task(name="c.aearly", ack="early")
async def aearly(key: str) -> str:
    return await agate.function(key)


@task(name="c.early_failure", ack="early")
def early_failure() -> None:
    raise ValueError("too late")


@task(name="c.apush")
async def apush(key: str, value: object, seconds: float = 0) -> None:
    say(key, value)
    if seconds:
        await asyncio.sleep(seconds)


@task(name="c.nap")
def nap(seconds: float) -> None:
    threading.Event().wait(seconds)


@task(name="c.napping_pid")
def napping_pid(seconds: float) -> int:
    threading.Event().wait(seconds)
    return os.getpid()


@task(name="c.asleep")
async def asleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


class OddError(Exception):
    pass


@task(name="c.fail", retry=RetryPolicy(delay=0.01, jitter=0))
def fail(message: str) -> None:
    raise OddError(message)


@task(name="c.fail_once_at_most", max_deliveries=1)
def fail_once_at_most() -> None:
    raise OddError("once")


@task(name="c.afail", retry=RetryPolicy(max_deliveries=2, delay=0))
async def afail(message: str) -> None:
    raise OddError(message)


@task(name="c.picky", retry=RetryPolicy(delay=0, give_up_on=[KeyError]))
def picky(key: str) -> None:
    say(key, "tried")
    if server().llen(key) == 1:
        raise OddError("again")
    raise KeyError("never")


@task(name="c.flaky", retry=RetryPolicy(delay=0))
def flaky(key: str, times: int) -> str:
    if server().incr(key) <= times:
        raise OddError("not yet")
    return "at last"


@task(name="c.retry")
def retry(key: str, after: float) -> None:
    job = context.current_job()
    assert job is not None
    say(key, job.attempts)
    if job.attempts == 0:
        raise Retry(after, "busy")


@task(name="c.snooze")
def snooze(key: str, seconds: float) -> None:
    job = context.current_job()
    assert job is not None
    say(key, f"{job.delivery},{job.attempts}")
    if job.delivery == 1:
        raise Snooze(seconds, "too\nearly")


@task(name="c.reject")
def reject() -> None:
    raise Reject("no such user")


@task(name="c.misuse", retry=RetryPolicy(delay=0))
def misuse() -> None:
    len(7)  # type: ignore[arg-type]


@task(name="c.odd_result")
def odd_result() -> object:
    return b"no JSON"


@task(name="c.leave")
def leave() -> None:
    raise SystemExit(3)


@task(name="c.spin", soft_time_limit=0.05, time_limit=20, max_deliveries=1)
def spin() -> None:
    while True:
        pass


@task(name="c.tidy", soft_time_limit=0.05, time_limit=20)
def tidy() -> str:
    try:
        while True:
            pass
    except SoftTimeLimit as error:
        return f"tidied up after {error.seconds}"


@task(name="c.profile", time_limit=5, max_deliveries=1)
def profile(calls: int) -> int:
    """How many of its calls a profiler sees."""
    seen = 0

    def look(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal seen
        seen += event == "call"

    sys.setprofile(look)
    try:
        for _ in range(calls):
            _called()
    finally:
        sys.setprofile(None)
    return seen


def _called() -> None:
    pass


@task(name="c.aspin", soft_time_limit=0.05, time_limit=20, max_deliveries=1)
async def aspin() -> None:
    await asyncio.sleep(30)


@task(name="c.context")
def tell_context(key: str) -> dict[str, Any]:
    job = context.current_job()
    assert job is not None
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "delivery": job.delivery,
        "headers": dict(job.headers),
        "worker": job.worker,
        "thread": threading.current_thread().name,
    }


@task(name="c.acontext")
async def atell_context() -> str:
    await asyncio.sleep(0)
    job = context.current_job()
    assert job is not None
    return job.id


@task(name="c.run_on")
def run_on(key: str) -> None:
    """Runs on, in bytecode, until something is raised in it."""
    try:
        say(key, "in")
        while True:
            pass
    except BaseException as error:
        say(key, f"{type(error).__name__} {isinstance(error, Exception)}")
        raise


@task(name="c.in_c")
def in_c(path: str) -> None:
    """In one call of C: there is a file while it lasts; it ends when something is in the other."""
    os.system(f"touch {path}; cat {path}.go > /dev/null")


@task(name="c.stubborn")
def stubborn(key: str) -> None:
    """Does not let itself be interrupted, but once."""
    try:
        run_on.function(key)
    except BaseException:
        await_go(key)


@task(name="c.watch")
def watch(key: str) -> None:
    """Looks at its own context until that changes."""
    say(key, "in")
    job = context.current_job()
    assert job is not None
    clock = threading.Event()
    while not (job.cancelled or job.stopping):
        clock.wait(0.005)
    say(key, "cancelled" if job.cancelled else "stopping")


@task(name="c.file")
def wait_for_file(started: str, path: str) -> str:
    """Runs until there is a file, whatever becomes of Redis."""
    open(started, "a").close()
    clock = threading.Event()
    while not os.path.exists(path):
        clock.wait(0.005)
    return "found"


@task(name="c.grow")
def grow(megabytes: int) -> None:
    globals()["_kept"] = bytearray(megabytes * 1024 * 1024)


@task(name="c.pid")
def pid() -> int:
    return os.getpid()
