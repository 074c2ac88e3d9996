"""A consumer of one's own, one job at a time: `python -m tests.soak.consumer WAY QUEUE LEASE URL`.

WAY: "sync" takes the next job, again and again; "async" does each step of the protocol itself:
after an error it says its last outcomes again and asks what it holds; when its registration is lost
it joins again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from rqueue import errors
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.model.envelope import unpack
from rqueue.model.job import Delivery
from rqueue.protocol.wake import Wake
from tests.soak.records import Recorder

WINDOW = 5
WAIT_S = 0.5
PAUSE_S = 0.1


class Work:
    """What is to be run, and what is to be settled, apart from how the queue is asked."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.todo: list[Delivery] = []
        self.ended: list[Delivery] = []
        """Ended, and the queue has not confirmed that it knows."""
        self.broken: list[Delivery] = []
        self.lost = False
        """Whether a reply may have been lost, so that the held jobs must be looked at."""
        self.over = threading.Event()
        self.recorder = Recorder(role="job")

    def hear(self, wakes: Iterable[Wake]) -> None:
        """Take the jobs that were delivered."""
        for wake in wakes:
            if wake.kind == "reconnected":
                self.lost = True
            elif wake.kind == "revoked":
                self.todo = [job for job in self.todo if job.id != wake.id]
            elif wake.job is not None:
                self.todo.append(wake.job)

    def run(self, job: Delivery) -> None:
        """Do what the job says, and note it; what it says cannot be read: to the dead letters."""
        try:
            _, args, _, _ = unpack(job.body)
        except errors.Undecodable:
            self.broken.append(job)
            return
        if len(args) < 3:  # a damaged value may be an envelope, but none of a publisher
            self.broken.append(job)
            return
        publisher, number, seconds, *_ = args
        facts: dict[str, Any] = {"id": job.id, "queue": self.queue, "slot": 0}
        self.recorder.write("begin", publisher=publisher, number=number, **facts)
        time.sleep(min(seconds, 0.005))
        self.recorder.write("end", publisher=publisher, number=number, **facts)
        self.ended.append(job)

    def confirmed(self, refused: list[str]) -> None:
        """The queue knows these outcomes, but for jobs that were not held any more."""
        for job in self.ended:
            if job.id not in refused:
                self.recorder.write("settled", id=job.id, queue=self.queue)
        self.ended.clear()

    def recalled(self, jobs: list[Delivery]) -> None:
        """These are held, and no others."""
        done = {job.id for job in self.ended}
        self.todo = [job for job in jobs if job.id not in done]
        self.lost = False

    def settle(self, consumer: Consumer) -> None:
        """Tell the queue what became of jobs."""
        if self.ended:
            consumer.settle(ack=self.ended)
            self.confirmed(consumer.refused)
        while self.broken:
            consumer.reject(self.broken[-1], "cannot be read", "undecodable")
            self.broken.pop()

    def forget(self) -> None:
        """Nothing is held any more."""
        for jobs in (self.todo, self.ended, self.broken):
            jobs.clear()

    def failed(self, error: Exception) -> None:
        """Note an error that nobody promised; any error: the held jobs must be looked at."""
        self.lost = True
        if not isinstance(error, errors.RedisUnavailable):
            self.recorder.write("wrong", error=type(error).__name__, said=str(error)[:300])


def receiving(work: Work, lease: str, url: str) -> None:
    """With `Consumer.receive`, which makes good what was lost by itself."""
    queue = Queue(work.queue, url)
    consumer = queue.consumer(jobs=WINDOW, lease=lease)
    joined = False
    while not work.over.is_set():
        try:
            if not joined:
                consumer.register()
                joined = True
            work.settle(consumer)
            job = consumer.receive(WAIT_S)
            if job is not None:
                work.run(job)
        except errors.RegistrationLost:
            work.forget()
        except Exception as error:
            work.failed(error)
            work.over.wait(PAUSE_S)
    work.settle(consumer)
    consumer.close()
    queue.close()


async def on_a_loop(work: Work, lease: str, url: str) -> None:
    """With `AsyncConsumer`."""
    queue = AsyncQueue(work.queue, url)
    consumer = queue.consumer(jobs=WINDOW, lease=lease)
    join: Any = consumer.register
    while not work.over.is_set():
        try:
            if not consumer.term:
                await join()
            if work.ended:
                await consumer.settle(ack=work.ended)
                work.confirmed(consumer.refused)
            while work.broken:
                await consumer.reject(work.broken[-1], "cannot be read", "undecodable")
                work.broken.pop()
            if work.lost:
                work.recalled(await consumer.pull(recall=True))
            if not work.todo:
                work.todo = await consumer.pull()
            if not work.todo:
                work.hear(await consumer.wait(WAIT_S))
            if work.todo:
                work.run(work.todo.pop(0))
        except errors.RegistrationLost:
            work.forget()
            join = consumer.rejoin
        except Exception as error:
            work.failed(error)
            await asyncio.sleep(PAUSE_S)
    if work.ended:
        await consumer.settle(ack=work.ended)
        work.confirmed(consumer.refused)
    await consumer.close()
    await queue.close()


def main(way: str, queue: str, lease: str, url: str) -> None:
    """Consume until SIGTERM."""
    work = Work(queue)
    signal.signal(signal.SIGTERM, lambda *_: work.over.set())
    if way == "async":
        asyncio.run(on_a_loop(work, lease, url))
    else:
        receiving(work, lease, url)


if __name__ == "__main__":
    main(*sys.argv[1:])
