"""A paused queue delivers nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rqueue.errors import RQueueError
from rqueue.tasks.options import NO_OPTIONS
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.publisher import Publisher
from tests.soak.rounds import resume
from tests.soak.scenario import Scenario

LOOKS = 5
LOOK_S = 0.03


def enqueue(publisher: Publisher) -> None:
    """Some jobs; now and then the queue is paused, and looked at while jobs come."""
    queue = publisher.queue("pause")
    publisher.send("pause", NO_OPTIONS)
    if publisher.random.random() < 0.9:
        return
    held = []
    try:
        queue.pause()
        for _ in range(LOOKS):
            held.append(queue.counts().held)
            publisher.send("pause", NO_OPTIONS)
            publisher.over.wait(LOOK_S)
        held.append(queue.counts().held)
    except RQueueError:
        pass  # what was seen before counts
    publisher.record("looked at paused", held=held)
    resume(publisher, queue)


def judge(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Of a queue that is paused the held jobs become fewer, never more."""
    for record in evidence.records["looked at paused"]:
        held = record["held"]
        more = any(after > before for before, after in pairwise(held))
        yield f"held jobs of a paused queue, one look after the other: {held}" * more


SCENARIO = Scenario("pause", {"pause": {}}, enqueue, {"delivered by a paused queue": judge}, rate=4)
