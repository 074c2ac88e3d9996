"""Jobs that cost a worker its process, or a pool all of its, beside others that do not."""

import ctypes
import os
import signal
import threading

import redis

import rqueue_workers.worker.settle_calls
from rqueue.tasks.decorator import task


def _say(key: str, text: str) -> None:
    with redis.Redis.from_url(os.environ["TEST_URL"]) as client:
        client.rpush(key, text)


@task(name="innocent")
def innocent(key: str, number: int) -> None:
    """Say that it ran."""
    _say(key, str(number))


@task(name="die_alone")
def die_alone(key: str) -> None:
    """End the worker."""
    _say(key, "poison")
    os._exit(3)


@task(name="die_with_all")
def die_with_all(key: str) -> None:
    """End the supervisor and the worker, as the kernel does with a container out of memory."""
    _say(key, "poison")
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@task(name="fragile", max_crashes=1)
def fragile(key: str) -> None:
    """End the worker; the task allows that once."""
    die_alone.function(key)


@task(name="brittle", max_deliveries=2, max_crashes=9)
def brittle(key: str) -> None:
    """End the worker; the task allows two attempts."""
    die_alone.function(key)


@task(name="sturdy", max_deliveries=12)
def sturdy(key: str) -> None:
    """Fail; the task allows more attempts than the queue."""
    _say(key, "failed")
    raise ValueError("again")


@task(name="sabotage")
def sabotage(key: str) -> None:
    """Break rqueue itself: the worker cannot say what became of the job."""
    _say(key, "poison")
    rqueue_workers.worker.settle_calls.pack_rows = None  # type: ignore[assignment]


@task(name="inject")
def inject(key: str) -> None:
    """Raise SystemExit in the main thread, in rqueue's own code, and wait for what comes of it."""
    thread = ctypes.c_ulong(threading.main_thread().ident or 0)
    _say(key, "about to raise")
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(SystemExit))
    threading.Event().wait(15)


@task(name="wreck")
def wreck(key: str) -> None:
    """As `inject`, and wake the main thread up, whatever it waits for."""
    thread = ctypes.c_ulong(threading.main_thread().ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(SystemExit))
    _say(key, "wrecked")
    with redis.Redis.from_url(os.environ["TEST_URL"]) as client:
        for one in client.client_list():
            if one["cmd"] == "blpop":
                client.client_kill_filter(_id=one["id"])
    threading.Event().wait(15)


@task(name="elsewhere")
async def elsewhere() -> None:
    """It makes the worker have a hundred slots for async tasks."""
