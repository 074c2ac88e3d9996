"""The tasks of the soak. Each notes when it begins and how it ends; some end their process.

A job is known by who published it and its number there, not by its id: so that two ids for one
call, or one id for two, would show.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import cache

from rqueue import Reject, RetryPolicy, current_job, task, worker_connection
from tests.soak.records import FOLDER, Recorder

LATE = "SOAK_LATE"
"""Set in the one pool, started at the end, that knows the task `soak.late`."""

AGAIN = RetryPolicy(delay=0.05, max_delay=1.0)
CHILD_S = 10.0
"""Seconds in which a job's forked child must have ended."""


class Wanted(Exception):
    """A failure that the job was asked for."""


@cache
def recorder() -> Recorder:
    """This process's records."""
    return Recorder()


def note(what: str, publisher: str, number: int, **facts: object) -> None:
    """Note something about a job that runs here."""
    job = current_job()
    assert job is not None
    recorder().write(
        what,
        publisher=publisher,
        number=number,
        id=job.id,
        queue=job.queue,
        slot=threading.get_native_id(),
        **facts,
    )


if FOLDER in os.environ:  # a program of the soak, not a test that imports its tasks
    worker_connection.add_listener(lambda state: recorder().write("connection", state=state))


@task(name="soak.step", queue="main", retry=AGAIN)
def step(publisher: str, number: int, seconds: float, how: str = "") -> str:
    """Begin, work a while, end as asked."""
    note("begin", publisher, number)
    time.sleep(seconds)
    finish(publisher, number, how)
    return f"{publisher}/{number}"


if LATE in os.environ:

    @task(name="soak.late", queue="side")
    def late(publisher: str, number: int) -> None:
        """A task that no worker knew before the end."""
        note("begin", publisher, number)
        note("end", publisher, number)


def finish(publisher: str, number: int, how: str) -> None:
    """End a job as it was asked to: well, with a failure, or with its process."""
    job = current_job()
    assert job is not None
    if how == "fail" and job.attempts == 0:
        note("fail", publisher, number)
        raise Wanted
    if how == f"reject-{job.queue}":
        note("fail", publisher, number)
        raise Reject
    if how.startswith("die"):
        note("dies", publisher, number, how=how)
        _die(how)
    if how.startswith("fork"):
        parent = os.getpid()
        _fork(how)
        if os.getpid() != parent:
            return  # the careless child: it simply goes on
    note("end", publisher, number)


def _die(how: str) -> None:
    """End this process, as a broken extension, `os._exit` or the kernel's killer would."""
    if how == "die-exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGSEGV if how == "die-segv" else signal.SIGKILL)
    time.sleep(60)  # until the signal is there


def _fork(how: str) -> None:
    child = os.fork()
    if child == 0:
        if how == "fork-exit":
            sys.exit(0)
        return
    until = time.monotonic() + CHILD_S
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            recorder().write("child lives", child=child)
            return
        time.sleep(0.01)
