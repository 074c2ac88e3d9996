"""All that the jobs of a worker process share: `SHARED` has, for each row of the table in
docs/workers.md, a change that a job makes and what a later job sees."""

import asyncio
import contextvars
import decimal
import gc
import locale
import logging
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rqueue.errors import SoftTimeLimit
from rqueue.tasks.decorator import task
from rqueue.tasks.retry import NO_RETRY

_variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
_held: list[Any] = []


def _rlimit() -> tuple[int, int]:
    return resource.getrlimit(resource.RLIMIT_CORE)


def _thread() -> None:
    _held.append(threading.Thread(target=threading.Event().wait, name="of a job", daemon=True))
    _held[-1].start()


SHARED: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "signal handlers": (
        lambda: signal.signal(signal.SIGUSR2, lambda *_: None),
        lambda: callable(signal.getsignal(signal.SIGUSR2)),
    ),
    "blocked signals": (
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2}),
        lambda: signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, ()),
    ),
    "interval timers": (
        lambda: [signal.setitimer(kind, 1000) for kind in (0, 1, 2)],
        lambda: any(signal.getitimer(kind)[0] for kind in (0, 1, 2)),
    ),
    "file descriptors": (lambda: _held.append(open(os.devnull)), lambda: not _held[0].closed),  # noqa: SIM115
    "threads": (_thread, lambda: any(t.name == "of a job" for t in threading.enumerate())),
    "environment": (
        lambda: os.environ.update(OF_A_JOB="1"),
        lambda: os.environ.get("OF_A_JOB") == "1",
    ),
    "working folder": (lambda: os.chdir("/"), lambda: Path.cwd() == Path("/")),
    "umask": (lambda: os.umask(0o77), lambda: os.umask(0o77) == 0o77),
    "resource limits": (
        lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, _rlimit()[1])),
        lambda: _rlimit()[0] == 0,
    ),
    "niceness": (lambda: _held.append(os.nice(1)), lambda: os.nice(0) == _held[0]),
    "context variables": (lambda: _variable.set(1), lambda: _variable.get() == 1),
    "decimal context": (
        lambda: setattr(decimal.getcontext(), "prec", 5),
        lambda: decimal.getcontext().prec == 5,
    ),
    "locale": (
        lambda: locale.setlocale(locale.LC_CTYPE, "C"),
        lambda: locale.setlocale(locale.LC_CTYPE) == "C",
    ),
    "state of random": (
        lambda: (random.seed(1), _held.append(random.getstate())),
        lambda: random.getstate() == _held[0],
    ),
    "logging": (
        lambda: logging.getLogger("of a job").setLevel(7),
        lambda: logging.getLogger("of a job").level == 7,
    ),
    "warnings filters": (
        lambda: warnings.simplefilter("error", ImportWarning),
        lambda: ("error", None, ImportWarning, None, 0) in warnings.filters,
    ),
    "sys.path": (lambda: sys.path.append("/of/a/job"), lambda: "/of/a/job" in sys.path),
    "sys.stdout": (
        lambda: setattr(sys, "stdout", open(os.devnull, "w")),  # noqa: SIM115
        lambda: sys.stdout.name == os.devnull,
    ),
    "recursion limit": (
        lambda: sys.setrecursionlimit(2345),
        lambda: sys.getrecursionlimit() == 2345,
    ),
    "settings of gc": (lambda: gc.set_threshold(1234), lambda: gc.get_threshold()[0] == 1234),
    "module globals": (lambda: _held.append("of a job"), lambda: "of a job" in _held),
}


@task(name="s.change")
def change(name: str) -> None:
    SHARED[name][0]()


@task(name="s.see")
def see(name: str) -> bool:
    return bool(SHARED[name][1]())


@task(name="s.achange")
async def achange(name: str) -> None:
    SHARED[name][0]()


@task(name="s.asee")
async def asee(name: str) -> bool:
    return bool(SHARED[name][1]())


@task(name="s.interrupted", retry=NO_RETRY)
def interrupted() -> list[float]:
    """A program that a job started gets a SIGINT."""
    child = subprocess.Popen(["sleep", "600"])
    child.send_signal(signal.SIGINT)
    forked = os.fork()
    if not forked:
        while True:
            time.sleep(600)
    os.kill(forked, signal.SIGINT)
    return [child.wait(), os.waitpid(forked, 0)[1]]


@task(name="s.alarms", soft_time_limit=0.3, retry=NO_RETRY)
def alarms() -> None:
    """Has alarms of its own, as decorators for time limits do."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    time.sleep(0.1)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    time.sleep(600)


@task(name="s.swallow", soft_time_limit=0.1, retry=NO_RETRY)
def swallow(kind: str) -> None:
    """A loop that goes on whatever fails in it."""
    kinds: tuple[type[BaseException], ...] = {
        "OSError": (OSError,), "TimeoutError": (TimeoutError,), "Exception": (Exception,),
    }.get(kind, (SoftTimeLimit,))  # fmt: skip
    swallowed = 0
    while True:
        try:
            time.sleep(600)
        except kinds:
            swallowed += 1
            if swallowed == 2:
                return


class _Finalized:
    def __del__(self) -> None:
        time.sleep(30)  # what is raised here is printed, and gone


@task(name="s.finalizer", soft_time_limit=0.1, retry=NO_RETRY)
def finalizer() -> None:
    _Finalized()
    time.sleep(600)


@task(name="s.tidy", soft_time_limit=0.1, retry=NO_RETRY)
def tidy() -> str:
    """Takes longer to tidy up than the limit, and is left alone."""
    try:
        while True:
            time.sleep(0.01)
    except SoftTimeLimit:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            time.sleep(0.01)
        return "tidied up"


@task(name="s.regex", soft_time_limit=0.3, retry=NO_RETRY)
def regex() -> None:
    """Holds the interpreter's lock, and looks for signals in C."""
    re.match(r"(a+)+$", "a" * 60 + "b")


@task(name="s.loop", soft_time_limit=0.2, retry=NO_RETRY)
def loop() -> None:
    asyncio.run(asyncio.sleep(600))


@task(name="s.many")
def many() -> int:
    """Descriptors above 1,024, and a connection with such a number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    _held.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(1200))
    return int(_held[-1])


@task(name="s.deaf")
def deaf(begun: str) -> None:
    """Holds the interpreter's lock, and looks for signals, which are not for it."""
    Path(begun).touch()
    re.match(r"(a+)+$", "a" * 60 + "b")
