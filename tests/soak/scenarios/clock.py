"""A queue whose clock is set, forth and back: no job is lost, and none is done twice for that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from rqueue.errors import RQueueError
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from tests.soak.cases import said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.field import Field
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

MOST_S = 30
BACK_MS = 3_600_000


def enqueue(publisher: Publisher) -> None:
    """A job, delayed or not; now and then the clock is set."""
    delay = publisher.random.choice((0, 0, 300, 1500))
    publisher.send("clock", Options(delay_ms=delay) if delay else Options())
    if publisher.random.random() < 0.05:
        since = time.monotonic()
        moved = publisher.random.uniform(-MOST_S, MOST_S)
        with suppress(RQueueError):  # it may have been set all the same
            move_time(publisher.queue("clock"), moved * 1000)
        times = {"since": since, "until": time.monotonic()}
        publisher.record("effect", kind="clock", pids=[], scope="clock", moved=moved, **times)


def finish(field: Field) -> None:
    """So far ahead that all is due, whatever was set before."""
    with field.queue("clock") as queue:
        move_time(queue, BACK_MS)
    now = time.monotonic()
    field.recorder.write("effect", kind="clock", pids=[], scope="clock", since=now, until=now)


def judge(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A job that was accepted is not done, or ended more than once."""
    for job in SCENARIO.jobs(evidence):
        if job.accepted:
            ends = [row["outcome"] for row in job.finals]
            yield f"{said(job)}: ended as {ends}" * (ends != ["ack"])


SCENARIO = Scenario(
    "clock", {"clock": {}}, enqueue, {"not done once": judge}, rate=2, finish=finish
)
