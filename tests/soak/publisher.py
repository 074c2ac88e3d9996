"""A publisher: draws numbers for its jobs, and notes what is sent and which answer came.

Before an enqueue is tried there is a record "sent"; afterwards one of "accepted", "refused"
(documented as not stored), "unknown" (documented as open), or "wrong": an error that nobody
promised.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from rqueue import errors
from rqueue.client._sync.queue import Queue
from rqueue.tasks.options import Options
from tests.soak.records import LIFE, Recorder

T = TypeVar("T")

TRIES = 8

OPEN = (errors.ConnectionLost, errors.RedisTimeout)
"""Errors after which it is not known whether the job was stored: the same id again is safe."""


class Publisher:
    """One publisher in one life of its program. `name`: of its scenario, or of its way and its
    queue. folder: of its records, where the environment does not say it."""

    def __init__(self, name: str, seed: int, url: str, folder: Path | None = None) -> None:
        self.scenario = name
        self.name = f"{name}.{os.environ.get(LIFE, 'end')}"
        self.random = random.Random(f"{seed}{self.name}")
        recorder = Recorder(folder, role="producer")
        self.record = recorder.write
        self.record_folder = recorder.folder
        self.over = threading.Event()
        self.url = url
        self._numbers = count(1)
        self._queues: dict[str, Queue] = {}

    def queue(self, name: str) -> Queue:
        """The client of a queue."""
        if name not in self._queues:
            self._queues[name] = Queue(name, self.url)
        return self._queues[name]

    def close(self) -> None:
        """Give the connections back."""
        for queue in self._queues.values():
            queue.close()

    def number(self) -> int:
        """The next number."""
        return next(self._numbers)

    def id(self, number: int) -> str:
        """The id of one of its jobs, where nothing else says it."""
        return f"{self.name}-{number}"

    def say(self, what: str, number: int, **facts: Any) -> None:
        """Note something about one of its jobs."""
        facts.setdefault("id", self.id(number))
        self.record(what, publisher=self.name, number=number, **facts)

    def sent(self, queue: str, **facts: Any) -> int:
        """Note that a job is about to be sent; its number. What is tried again under the same id
        keeps its place in the publisher's order."""
        number = self.number()
        self.say("sent", number, queue=queue, scenario=self.scenario, **facts)
        return number

    def send(self, queue: str, options: Options, how: str = "", **facts: Any) -> Any:
        """Send one job that works for a moment; its handle, or None."""
        number = self.sent(queue, how=how, **facts)
        seconds = self.random.choice((0.0, 0.002, 0.01, 0.03))
        arguments = (self.name, number, seconds, how)
        its = options.merged(id=self.id(number))
        return self.attempt(
            [number], lambda: self.queue(queue).send("soak.step", arguments, None, its)
        )

    def attempt(self, numbers: Sequence[int], act: Callable[[], T]) -> T | None:
        """Do something again while its outcome is unknown; what it returned, None without one."""
        for _ in range(TRIES):
            try:
                done = act()
            except Exception as error:
                if self.failed(numbers, error):
                    continue
                return None
            for number in numbers:
                self.say("accepted", number)
            return done
        return None

    def failed(self, numbers: Sequence[int], error: BaseException) -> bool:
        """Note an error; True if the same is to be tried again."""
        what = "wrong"
        if isinstance(error, errors.QueueFull):
            what = "refused"
        if isinstance(error, errors.RedisUnavailable):
            unknown = getattr(error, "outcome_unknown", isinstance(error, OPEN))
            what = "unknown" if unknown else "refused"
        for number in numbers:
            self.say(what, number, error=type(error).__name__, said=str(error)[:300])
        return what == "unknown"

    def asked(self, number: int, error: BaseException) -> None:
        """Note how a wait for a result ended, if it should not have ended so."""
        if not isinstance(error, errors.ResultError | errors.RedisUnavailable | errors.UnknownJob):
            said = f"result(): {error}"[:300]
            self.say("wrong", number, error=type(error).__name__, said=said)

    def pauses(self, rate: float) -> Iterator[None]:
        """Yields again and again, `rate` times a second in the mean, until it is asked to end."""
        while not self.over.wait(self.random.expovariate(rate)):
            yield

    def left(self, puts: int = 0) -> None:
        """Note that it left in good order."""
        self.record("left", publisher=self.name, puts=puts)
