"""A producer: enqueues in one of the ways that the client has, and notes the answers.

`python -m tests.soak.producer WAY QUEUE RATE SEED URL`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from rqueue import Options, errors
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Call
from tests.soak.publisher import TRIES, Publisher

BATCH = 20
RESULT_S = 2.0
"""Seconds that a producer waits for a result, now and then."""


def next_job(publisher: Publisher, way: str, queue: str) -> tuple[int, Call]:
    """The next job, noted as sent."""
    draw = publisher.random.random()
    options: dict[str, Any] = {}
    task, how = "soak.step", ""
    seconds = publisher.random.choice((0.0, 0.001, 0.002, 0.005, 0.02))
    if queue == "main":
        if draw < 0.02:
            seconds = publisher.random.choice((0.2, 0.5))
        elif draw < 0.06:
            how = "fail"
        elif draw < 0.2:
            task = "soak.astep"
        if way == "delayed":
            if publisher.random.random() < 0.5:
                options["delay_ms"] = publisher.random.randrange(10, 3000)
            options["priority"] = publisher.random.choice((0, 3, 4, 4, 9))
    number = publisher.sent(queue, task=task, delay=options.get("delay_ms", 0))
    options["id"] = publisher.id(number)
    return number, Call(task, (publisher.name, number, seconds, how), None, Options(**options))


def one_by_one(publisher: Publisher, way: str, queue: str, rate: float) -> None:
    """`send`, and now and then a result is waited for."""
    client = publisher.queue(queue)
    for _ in publisher.pauses(rate):
        number, call = next_job(publisher, way, queue)

        def send(call: Call = call) -> Any:
            return client.send(*call[:3], options=call.options)

        handle = publisher.attempt([number], send)
        if handle is not None and publisher.random.random() < 0.05:
            try:
                handle.result(RESULT_S)
            except Exception as error:
                publisher.asked(number, error)


def in_batches(publisher: Publisher, way: str, queue: str, rate: float) -> None:
    """`enqueue_many`: a batch is stored or refused as a whole."""
    client = publisher.queue(queue)
    for _ in publisher.pauses(rate / BATCH):
        sent = [next_job(publisher, way, queue) for _ in range(BATCH)]
        calls = [call for _, call in sent]

        def send(calls: list[Call] = calls) -> Any:
            return client.enqueue_many(calls)

        publisher.attempt([number for number, _ in sent], send)


def in_background(publisher: Publisher, way: str, queue: str, rate: float) -> None:
    """`put`: the listeners say what became of it."""
    numbers: dict[str, int] = {}

    def stored(handle: Any) -> None:
        publisher.say("accepted", numbers.pop(handle.id))

    def given_up(error: Exception, puts: list[Any]) -> None:
        # no outage may have that for an end: what is put is kept until it is stored
        for put in puts:
            said = f"given up: {error}"[:300]
            publisher.say("wrong", numbers.pop(put.id), error=type(error).__name__, said=said)

    putter = publisher.queue(queue).putter(on_error=given_up)
    putter.add_listener(stored)
    for _ in publisher.pauses(rate / 5):
        for _ in range(publisher.random.randrange(1, 10)):
            number, call = next_job(publisher, way, queue)
            numbers[publisher.id(number)] = number
            try:
                putter.put_call(call, timeout=30)
            except errors.BufferFull as error:
                publisher.say("refused", number, error="BufferFull", said=str(error))
            except Exception as error:
                publisher.failed([number], error)
    publisher.left(len(putter.close(20)))


async def on_a_loop(publisher: Publisher, queue: str, rate: float) -> None:
    """The asyncio client."""
    async with AsyncQueue(queue, publisher.url) as client:
        while not publisher.over.is_set():
            await asyncio.sleep(publisher.random.expovariate(rate))
            number, call = next_job(publisher, "loop", queue)
            for _ in range(TRIES):
                try:
                    handle = await client.send(*call[:3], options=call.options)
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
    publisher = Publisher(f"{way}-{queue}", int(seed), url)
    signal.signal(signal.SIGTERM, lambda *_: publisher.over.set())
    if way == "loop":
        asyncio.run(on_a_loop(publisher, queue, float(rate)))
    elif way == "background":
        in_background(publisher, way, queue, float(rate))
        return
    elif way == "batch":
        in_batches(publisher, way, queue, float(rate))
    else:
        one_by_one(publisher, way, queue, float(rate))
    publisher.close()
    publisher.left()


if __name__ == "__main__":
    main(*sys.argv[1:])
