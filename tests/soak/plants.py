"""Wrongs done behind everybody's back, to show that the verdict finds each of them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rqueue.client._sync.queue import Queue
from rqueue.tasks.options import Options
from tests.soak.field import Field
from tests.soak.programs import MARK
from tests.soak.servers import wait_for

Plant = Callable[[Field], None]
PUBLISHER = "planted"


class Plot:
    """A queue that is paused while something is done to its jobs."""

    def __init__(self, field: Field, queue: Queue) -> None:
        self._field = field
        self.queue = queue
        self.keys = queue.keys
        self.redis = queue.redis

    def ended(self, id_: str) -> bool:
        """Whether a job is done."""
        return self.queue.job(id_).state() == "done"

    def job(
        self, name: str, number: int = 1, answer: str = "accepted", task: str = "soak.step"
    ) -> str:
        """Enqueue a job, and note the answer that its producer got; its id."""
        publisher = f"{PUBLISHER}-{name}"
        id_ = f"{publisher}-{number}"
        facts = {"publisher": publisher, "number": number, "id": id_, "queue": self.queue.name}
        self._field.recorder.write("sent", **facts)
        self.queue.send(task, (publisher, number, 0.0, ""), options=Options(id=id_))
        self._field.recorder.write(answer, **facts)
        return id_


@contextmanager
def plot(field: Field, name: str) -> Iterator[Plot]:
    """A plot in a queue that delivers nothing meanwhile."""
    queue = field.queue(name)
    queue.pause()
    try:
        yield Plot(field, queue)
    finally:
        queue.resume()
        queue.close()


def lose(field: Field) -> None:
    """A job vanishes."""
    with plot(field, "side") as here:
        id_ = here.job("lost")
        here.redis.hdel(here.keys.jobs, id_)
        here.redis.lrem(here.keys.ready(4), 0, id_)


def settle_twice(field: Field) -> None:
    """The record of an ended job vanishes, and the job is enqueued again."""
    for _ in range(2):
        with plot(field, "main") as here:
            id_ = here.job("twice")
        wait_for(partial(here.ended, id_))
        here.redis.hdel(here.keys.ended, id_)


def reorder(field: Field) -> None:
    """Two jobs change places: in all that Redis has of them, as a worker puts what comes back to it
    into the order of the queue."""
    with plot(field, "order") as here:
        ids = [here.job("order", 2), here.job("order", 1)]
    for id_ in ids:  # the pool of this queue may still be on its way up
        wait_for(partial(here.ended, id_))


def charge(field: Field) -> None:
    """A job that waits is said to have been tried twice."""
    with plot(field, "side") as here:
        id_ = here.job("charged")
        value: Any = here.redis.hget(here.keys.jobs, id_)
        header, _, body = value.partition(b";")
        position, enqueued = header.split(b",")[:2]
        changed = b",".join((position, enqueued, b"4,2,2,0,0"))
        here.redis.hset(here.keys.jobs, id_, changed + b";" + body)


def store_refused(field: Field) -> None:
    """A job is stored, and its producer got the answer that it is not."""
    with plot(field, "side") as here:
        here.job("refused", answer="refused")


def cancel_unasked(field: Field) -> None:
    """A job is cancelled by nobody."""
    with plot(field, "side") as here:
        here.queue.cancel(here.job("cancelled"))


def send_nothing(field: Field) -> None:
    """A job begins that nobody sent."""
    queue = field.queue("side")
    queue.send("soak.step", (f"{PUBLISHER}-nobody", 1, 0.0, ""))
    queue.close()


def never_end(field: Field) -> None:
    """A job that nobody can run."""
    with plot(field, "side") as here:
        here.job("unfinished", task="soak.never")


def swallow_damage(field: Field) -> None:
    """A damaged value is nowhere."""
    field.recorder.write("damaged", queue="side", id=f"{PUBLISHER}-damaged")


def kill_unsaid(field: Field) -> None:
    """A consumer is killed, and nobody says so."""
    os.kill(field.keeper.of("consumer")[0].pid, signal.SIGKILL)


def leave_process(field: Field) -> None:
    """A process that nobody controls."""
    command = ["/bin/sh", "-c", "sleep 600 > /dev/null 2>&1 &"]
    subprocess.run(command, env={**os.environ, MARK: field.run.id}, check=True)


def leave_key(field: Field) -> None:
    """A key that nobody knows."""
    with field.server.admin as admin:
        admin.set(field.queue("side").keys.base + "forgotten", 1)


def miscount(field: Field) -> None:
    """A counter says more than there is."""
    with field.server.admin as admin:
        admin.hincrby(field.queue("own").keys.meta, "marked", 5)


def admit_bug(field: Field) -> None:
    """A log has a traceback."""
    with field.keeper.of("pool")[0].log.open("a") as log:
        # whole: behind the first line alone might stand the end of a failure that was asked for
        log.write('Traceback (most recent call last):\n  File "planted"\nRuntimeError: planted\n')


def raise_unpromised(field: Field) -> None:
    """A producer meets an error of another library."""
    facts = {"publisher": PUBLISHER, "number": 0, "id": "", "queue": "side"}
    field.recorder.write("wrong", error="ResponseError", said="not ours", **facts)


PLANTS: dict[str, tuple[Plant, str]] = {
    "lose": (lose, "lost"),
    "settle twice": (settle_twice, "settled twice"),
    "begin again": (settle_twice, "begun again without a cause"),
    "reorder": (reorder, "out of order"),
    "charge": (charge, "charged and did not run"),
    "store what is refused": (store_refused, "refused and yet stored"),
    "cancel unasked": (cancel_unasked, "wrongly ended"),
    "send nothing": (send_nothing, "begun and never sent"),
    "never end": (never_end, "still waiting at the end"),
    "swallow damage": (swallow_damage, "damaged and gone"),
    "kill unsaid": (kill_unsaid, "exit codes unexplained"),
    "leave a process": (leave_process, "processes left"),
    "leave a key": (leave_key, "keys left"),
    "miscount": (miscount, "found by the doctor"),
    "admit a bug": (admit_bug, "tracebacks in logs"),
    "raise what nobody promised": (raise_unpromised, "errors that nobody promised"),
}
"""What can be planted, and the rule of the verdict that must find it."""
