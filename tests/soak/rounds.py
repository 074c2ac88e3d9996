"""Rounds: jobs that all wait before the first one is delivered, so that their order can be judged
at any speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rqueue.client._sync.queue import Call, Queue
from rqueue.errors import RQueueError
from rqueue.tasks.options import Options
from tests.soak.publisher import Publisher

PAUSE_S = 0.1


def one_round(
    publisher: Publisher,
    name: str,
    jobs: Sequence[tuple[Options, dict[str, Any]]],
    wait: float = 0.0,
) -> None:
    """Pause a queue, send jobs with their facts, wait for some seconds, and resume it."""
    queue = publisher.queue(name)
    try:
        queue.pause()
    except RQueueError:
        resume(publisher, queue)
        return
    its = f"{publisher.name}/{publisher.number()}"
    numbers, calls = [], []
    for options, facts in jobs:
        number = publisher.sent(name, round=its, **facts)
        numbers.append(number)
        arguments = (publisher.name, number, 0.0, "")
        calls.append(Call("soak.step", arguments, None, options.merged(id=publisher.id(number))))
    publisher.attempt(numbers, lambda: queue.enqueue_many(calls))
    publisher.over.wait(wait)
    resume(publisher, queue)


def resume(publisher: Publisher, queue: Queue) -> None:
    """Resume a queue as soon as Redis can be asked; the soak does it at the end, for all."""
    while True:
        try:
            queue.resume()
            return
        except RQueueError:
            if publisher.over.wait(PAUSE_S):
                return
