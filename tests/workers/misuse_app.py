"""Jobs that misuse the process they run in."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import redis

from rqueue.client._sync.queue import Queue
from rqueue.tasks.context import current_job
from rqueue.tasks.decorator import task
from rqueue.tasks.retry import RetryPolicy
from rqueue_workers.worker import outage

ONCE = RetryPolicy(max_deliveries=1)


def note(key: str, value: object) -> None:
    with redis.Redis.from_url(os.environ["TEST_URL"], socket_timeout=None) as client:
        client.rpush(key, str(value))


def _fork(how: str) -> int:
    """Fork; the child leaves the function in the way asked for. The child's status."""
    pid = os.fork()
    if pid == 0:
        match how:
            case "returns":
                return 1_000_000
            case "returns nothing":
                return None  # type: ignore[return-value]
            case "exits":
                sys.exit(7)
            case "raises":
                raise ValueError("in the child")
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


@task(name="fork")
def fork(how: str) -> int:
    return _fork(how)


@task(name="fork with a limit", soft_time_limit=20)
def fork_limited(how: str) -> int:
    return _fork(how)


@task(name="afork")
async def afork(how: str) -> int:
    await asyncio.sleep(0)
    return _fork(how)


@task(name="afork and wait")
async def afork_and_wait() -> int:
    """The child goes on on the loop, beside whatever else was there."""
    pid = os.fork()
    if pid == 0:
        await asyncio.sleep(0)
        os._exit(99)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


@task(name="fork and leave")
def fork_and_leave() -> int:
    """The child is not waited for."""
    return os.fork()


@task(name="kill child")
def kill_child() -> int:
    """As multiprocessing ends its processes."""
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _double(number: int) -> int:
    return 2 * number


@task(name="multiprocessing")
def multi() -> list[int]:
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(_double, range(10)))


class Exits:
    """Whatever is asked of it, it ends the program."""

    def __getattr__(self, name: str) -> Any:
        raise SystemExit(3)

    def __str__(self) -> str:
        raise SystemExit(3)


class OddError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class NotesError(Exception):
    @property
    def __notes__(self) -> list[str]:
        raise KeyboardInterrupt


class Meta(type):
    @property
    def __module__(cls) -> str:
        raise SystemExit(3)


class MetaError(Exception, metaclass=Meta):
    pass


@task(name="odd text", retry=ONCE)
def odd_text() -> None:
    raise OddError


@task(name="odd notes", retry=ONCE)
def odd_notes() -> None:
    raise NotesError("see the notes")


@task(name="odd class", retry=ONCE)
def odd_class() -> None:
    raise MetaError("what am I?")


@task(name="odd result", retry=ONCE)
def odd_result() -> object:
    return {"here": Exits()}


@task(name="aodd text", retry=ONCE)
async def aodd_text() -> None:
    raise OddError


@task(name="print")
def print_much(megabytes: int) -> None:
    line = "x" * 1023 + "\n"
    for _ in range(megabytes * 1024):
        sys.stdout.write(line)
    sys.stdout.flush()


@task(name="grow")
def grow(megabytes: int) -> int:
    globals()["kept"] = bytearray(megabytes * 1024 * 1024)
    return os.getpid()


@task(name="pid")
def pid() -> int:
    return os.getpid()


@task(name="apid")
async def apid() -> int:
    return os.getpid()


@task(name="block")
async def block(seconds: float) -> str:
    time.sleep(seconds)
    return "blocked"


@task(name="cancel all", retry=ONCE)
async def cancel_all(key: str) -> str:
    """Cancels every task of its loop, begun or not, itself among them."""
    note(key, "in")
    for other in asyncio.all_tasks():
        other.cancel()
    return "cancelled them"


@task(name="wait", retry=RetryPolicy(delay=0.01, jitter=0))
async def wait(key: str) -> str:
    note(key, "waits")
    await asyncio.sleep(0.3)
    return "waited"


@task(name="leave a task that exits")
async def leave_a_task_that_exits(how: str) -> str:
    """What it left behind ends with SystemExit on the loop, beside the jobs of others."""

    async def leaves() -> None:
        sys.exit(1)

    if how == "task":
        left.append(asyncio.create_task(leaves()))
    elif how == "callback":
        asyncio.get_running_loop().call_soon(sys.exit, 1)
    else:
        # uncaught in the factory: the job that is to begin next must not be lost
        asyncio.get_running_loop().set_task_factory(_no_tasks)
    await asyncio.sleep(0.05)
    return "went on"


left: list[asyncio.Task[None]] = []


def _no_tasks(*_: object, **__: object) -> asyncio.Task[None]:
    raise RuntimeError("no tasks today")


@task(name="stop loop")
async def stop_loop() -> str:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)
    return "went on"


@task(name="cancel itself", retry=ONCE)
async def cancel_itself() -> None:
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    await asyncio.sleep(1)


@task(name="signals")
def signals() -> str:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    return "ignored"


@task(name="close", retry=RetryPolicy(max_deliveries=2))
def close() -> None:
    os.closerange(3, 4096)


@task(name="close and wait", retry=RetryPolicy(max_deliveries=2))
def close_and_wait() -> None:
    close()
    threading.Event().wait(0.3)


@task(name="close async", retry=RetryPolicy(max_deliveries=2))
async def close_async() -> None:
    close()


@task(name="close async and wait", retry=RetryPolicy(max_deliveries=2))
async def close_async_and_wait() -> None:
    close()
    await asyncio.sleep(0.3)


@task(name="close sockets", retry=RetryPolicy(max_deliveries=2))
def close_sockets() -> None:
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # that of the listing itself is closed by now
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.close(descriptor)


@task(name="take all descriptors")
def take_all_descriptors() -> None:
    """As a leak does in the end: none that is new is to be had, also where one is closed."""
    outage.LASTS_S = 0.1
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


@task(name="no blocking")
def no_blocking() -> None:
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # that of the listing itself is closed by now
            os.set_blocking(descriptor, False)


@task(name="user")
def change_user() -> int:
    os.setegid(65534)
    os.seteuid(65534)
    return os.geteuid()


@task(name="orphans")
def orphans(count: int) -> None:
    """Leave processes that nobody waits for, and that end at once."""
    for _ in range(count):
        subprocess.run(["sh", "-c", "true & true &"], check=True)


@task(name="wait for another", retry=ONCE)
def wait_for_another(seconds: float) -> int:
    """It is enqueued into the queue whose worker this job holds."""
    job = current_job()
    assert job is not None
    with Queue(job.queue, os.environ["TEST_URL"]) as queue:
        return queue.enqueue("pid").result(seconds)  # type: ignore[no-any-return]
