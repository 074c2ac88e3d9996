"""Producers and consumers at work on queues of a cluster, while it is being changed under them."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import Any

from rqueue import Options
from rqueue.client._sync.queue import Queue
from rqueue.errors import NotConfirmed, RedisUnavailable, RegistrationLost
from tests.support.patience import PATIENCE, until


class Line:
    """One queue with one producer and one consumer, a thread each. `accepted`: numbers of jobs in
    the order in which their enqueues returned; `done`: in the order in which they were acquired and
    acknowledged; both with the time."""

    def __init__(self, url: str, name: str, **options: Any) -> None:
        self.url, self.name = url, name
        self.accepted: list[tuple[int, float]] = []
        self.done: list[tuple[int, float]] = []
        self.failures: list[Exception] = []
        self.broken: list[BaseException] = []
        self._options = options
        self._stop_producing, self._stop = threading.Event(), threading.Event()
        self._producer = threading.Thread(target=self._run, args=(self._produce,))
        self._consumer = threading.Thread(target=self._run, args=(self._consume,))

    def start(self) -> None:
        self._producer.start()
        self._consumer.start()

    def _run(self, work: Any) -> None:
        try:
            with Queue(self.name, self.url) as queue:
                work(queue)
        except BaseException as error:
            self.broken.append(error)
            raise

    def _produce(self, queue: Queue) -> None:
        number = 0
        while not self._stop_producing.wait(0.002):
            try:
                queue.send("t", options=Options(id=f"job-{number}", **self._options))
            except (RedisUnavailable, NotConfirmed) as error:  # the same one again
                self.failures.append(error)
                self._stop.wait(0.05)
            else:
                self.accepted.append((number, time.monotonic()))
                number += 1

    def _consume(self, queue: Queue) -> None:
        with queue.consumer(jobs=8) as consumer:
            recall = False
            while not self._stop.is_set():
                try:
                    jobs = consumer.pull(recall=recall)
                    recall = False
                    if not jobs:  # or they come with a wake-up
                        jobs = [wake.job for wake in consumer.wait(0.2) if wake.job is not None]
                    if jobs:
                        self._settle(consumer, jobs)
                except RedisUnavailable:
                    recall = True
                    self._stop.wait(0.05)
                except RegistrationLost:
                    consumer.rejoin()

    def _settle(self, consumer: Any, jobs: list[Any]) -> None:
        while not self._stop.is_set():
            try:
                consumer.settle(ack=jobs)
            except RedisUnavailable:
                self._stop.wait(0.05)
            else:
                now = time.monotonic()
                self.done += [(int(job.id.partition("-")[2]), now) for job in jobs]
                return

    def numbers(self) -> list[int]:
        """Of the jobs that were done, in their order."""
        return [number for number, _ in self.done]

    def stall(self, since: float) -> float:
        """The longest time between two enqueues that returned, of those since then."""
        times = [at for _, at in self.accepted if at >= since]
        return max(b - a for a, b in pairwise(times))

    def finish(self) -> None:
        """Produce no more, and wait until all is done that was accepted."""
        self._stop_producing.set()
        self._producer.join()
        assert not self.broken, self.broken
        wanted = {number for number, _ in self.accepted}
        try:
            until(lambda: wanted <= set(self.numbers()), f"all jobs of {self.name}", PATIENCE)
        finally:
            self.end()

    def end(self) -> None:
        self._stop_producing.set()
        self._stop.set()
        self._producer.join()
        self._consumer.join()


class Load:
    """A line for each queue."""

    def __init__(self, url: str, names: list[str], **options: Any) -> None:
        self.lines = [Line(url, name, **options) for name in names]

    def __enter__(self) -> Load:
        for line in self.lines:
            line.start()
        self.goes_on()
        return self

    def __exit__(self, *_: object) -> None:
        for line in self.lines:
            line.end()

    def goes_on(self, more: int = 20, lines: list[Line] | None = None) -> None:
        """Wait until more jobs of each queue are done."""
        for line in self.lines if lines is None else lines:
            seen = len(line.done)
            until(
                lambda line=line, seen=seen: len(line.done) >= seen + more,  # type: ignore[misc]
                f"more jobs of {line.name}",
                PATIENCE,
            )

    def finish(self) -> None:
        for line in self.lines:
            line.finish()
