"""A task that marks in a file when it begins and when it ends; a mark survives its process."""

from __future__ import annotations

import os
import time

import rqueue
from rqueue import current_job, stream, task

MARKS = os.environ.get("CRASH_MARKS", os.devnull)


def _mark(what: str, id_: str) -> None:
    # one small write to a file opened for appending is not torn, and needs no lock
    out = os.open(MARKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(out, f"{what} {os.getpid()} {id_}\n".encode())
    finally:
        os.close(out)


@task(name="crash.step", queue="crash")
def step(milliseconds: float) -> None:
    """Begin, take a while, end."""
    job = current_job()
    assert job is not None
    _mark("begin", job.id)
    time.sleep(milliseconds / 1000)
    _mark("end", job.id)


@task(name="crash.produce", queue="crash", max_crashes=100)
def produce(root: str, members: int, milliseconds: float) -> None:
    """Begin, enqueue a stream of steps, and one behind them, end."""
    job = current_job()
    assert job is not None
    _mark("begin", job.id)
    steps = (step.si(milliseconds) for _ in range(members))
    rqueue.queue(job.queue).enqueue_workflow(stream(steps, step.si(0)), id=root)
    _mark("end", job.id)
