"""A producer: enqueues in one of the ways that the client has, and notes the answers.

`python -m tests.soak.producer WAY QUEUE RATE SEED URL`. Before an enqueue is tried there is a
record "sent"; afterwards one of "accepted", "refused" (documented as not stored), "unknown"
(documented as open), or "wrong": an error that nobody promised.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from rqueue import Options, errors
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Call, Queue
from tests.soak.records import Recorder

BATCH = 20
TRIES = 8
RESULT_S = 2.0
"""Seconds that a producer waits for a result, now and then."""

OPEN = (errors.ConnectionLost, errors.RedisTimeout)
"""Errors after which it is not known whether the job was stored: the same id again is safe."""


class Publisher:
    """One life of a producer: its name, its numbers, its records."""

    def __init__(self, way: str, queue: str, seed: int) -> None:
        life = os.environ.get("SOAK_LIFE", "1")
        self.name = f"{way}-{queue}.{life}"
        self.way = way
        self.queue = queue
        self.random = random.Random(f"{seed}{self.name}")
        self._record = Recorder(role="producer")
        self._number = 0
        self.over = threading.Event()

    def next(self) -> tuple[int, Call]:
        """The next job, noted as sent."""
        self._number += 1
        number = self._number
        draw = self.random.random()
        options: dict[str, Any] = {}
        task, how = "soak.step", ""
        seconds = self.random.choice((0.0, 0.001, 0.002, 0.005, 0.02))
        if self.queue == "main":
            if draw < 0.02:
                seconds = self.random.choice((0.2, 0.5))
            elif draw < 0.06:
                how = "fail"
            elif draw < 0.2:
                task = "soak.astep"
            if self.way == "delayed":
                if self.random.random() < 0.5:
                    options["delay_ms"] = self.random.randrange(10, 3000)
                options["priority"] = self.random.choice((0, 3, 4, 4, 9))
        # what is tried again under the same id keeps its place in the publisher's order
        options["id"] = id_ = f"{self.name}-{number}"
        call = Call(task, (self.name, number, seconds, how), None, Options(**options))
        self.say("sent", number, id=id_, task=task, delay=options.get("delay_ms", 0))
        return number, call

    def say(self, what: str, number: int, **facts: Any) -> None:
        """Note something about one of its jobs."""
        facts.setdefault("id", f"{self.name}-{number}")
        self._record.write(
            what, publisher=self.name, number=number, queue=self.queue, way=self.way, **facts
        )

    def failed(self, numbers: list[int], error: BaseException) -> bool:
        """Note an error; True if the same is to be tried again."""
        what = "wrong"
        if isinstance(error, errors.RedisUnavailable):
            what = (
                "unknown"
                if getattr(error, "outcome_unknown", isinstance(error, OPEN))
                else "refused"
            )
        for number in numbers:
            self.say(what, number, error=type(error).__name__, said=str(error)[:300])
        return what == "unknown"

    def asked(self, number: int, error: BaseException) -> None:
        """Note how a wait for a result ended, if it should not have ended so."""
        if not isinstance(error, errors.ResultError | errors.RedisUnavailable | errors.UnknownJob):
            said = f"result(): {error}"[:300]
            self.say("wrong", number, error=type(error).__name__, said=said)

    def ended(self, left: int = 0) -> None:
        """Note that it left in good order."""
        self._record.write("left", publisher=self.name, puts=left)


def pauses(publisher: Publisher, rate: float) -> Iterator[None]:
    """Yields again and again, `rate` times a second in the mean, until it is asked to end."""
    while not publisher.over.wait(publisher.random.expovariate(rate)):
        yield


def one_by_one(publisher: Publisher, rate: float, url: str) -> None:
    """`enqueue`, and now and then a result is waited for."""
    with Queue(publisher.queue, url) as queue:
        for _ in pauses(publisher, rate):
            number, call = publisher.next()
            for _ in range(TRIES):
                try:
                    handle = queue.send(*call[:3], options=call.options)
                except Exception as error:
                    if publisher.failed([number], error):
                        continue
                    break
                publisher.say("accepted", number)
                if publisher.random.random() < 0.05:
                    try:
                        handle.result(RESULT_S)
                    except Exception as error:
                        publisher.asked(number, error)
                break


def in_batches(publisher: Publisher, rate: float, url: str) -> None:
    """`enqueue_many`: a batch is stored or refused as a whole."""
    with Queue(publisher.queue, url) as queue:
        for _ in pauses(publisher, rate / BATCH):
            sent = [publisher.next() for _ in range(BATCH)]
            numbers = [number for number, _ in sent]
            for _ in range(TRIES):
                try:
                    queue.enqueue_many(call for _, call in sent)
                except Exception as error:
                    if publisher.failed(numbers, error):
                        continue
                    break
                for number in numbers:
                    publisher.say("accepted", number)
                break


def in_background(publisher: Publisher, rate: float, url: str) -> None:
    """`put`: the listeners say what became of it."""
    numbers: dict[str, int] = {}

    def stored(handle: Any) -> None:
        publisher.say("accepted", numbers.pop(handle.id))

    def given_up(error: Exception, puts: list[Any]) -> None:
        # no outage may have that for an end: what is put is kept until it is stored
        for put in puts:
            said = f"given up: {error}"[:300]
            publisher.say("wrong", numbers.pop(put.id), error=type(error).__name__, said=said)

    with Queue(publisher.queue, url) as queue:
        putter = queue.putter(on_error=given_up)
        putter.add_listener(stored)
        for _ in pauses(publisher, rate / 5):
            for _ in range(publisher.random.randrange(1, 10)):
                number, call = publisher.next()
                assert call.options is not None
                id_ = str(call.options.id)
                numbers[id_] = number
                try:
                    putter.put_call(call, timeout=30)
                except errors.BufferFull as error:
                    publisher.say("refused", number, error="BufferFull", said=str(error))
                except Exception as error:
                    publisher.failed([number], error)
        publisher.ended(len(putter.close(20)))


async def on_a_loop(publisher: Publisher, rate: float, url: str) -> None:
    """The asyncio client."""
    async with AsyncQueue(publisher.queue, url) as queue:
        while not publisher.over.is_set():
            await asyncio.sleep(publisher.random.expovariate(rate))
            number, call = publisher.next()
            for _ in range(TRIES):
                try:
                    handle = await queue.send(*call[:3], options=call.options)
                except Exception as error:
                    if publisher.failed([number], error):
                        continue
                    break
                publisher.say("accepted", number)
                if publisher.random.random() < 0.05:
                    try:
                        await handle.result(RESULT_S)
                    except Exception as error:
                        publisher.asked(number, error)
                break


def main(way: str, queue: str, rate: str, seed: str, url: str) -> None:
    """Produce until SIGTERM."""
    publisher = Publisher(way, queue, int(seed))
    signal.signal(signal.SIGTERM, lambda *_: publisher.over.set())
    if way == "loop":
        asyncio.run(on_a_loop(publisher, float(rate), url))
    elif way == "background":
        in_background(publisher, float(rate), url)
        return
    elif way == "batch":
        in_batches(publisher, float(rate), url)
    else:
        one_by_one(publisher, float(rate), url)
    publisher.ended()


if __name__ == "__main__":
    main(*sys.argv[1:])
