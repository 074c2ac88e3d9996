"""Workflows of the soak: stored under ids that are known before, so that one whose producer died
half way is enqueued again, and goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rqueue import errors
from tests.soak.publisher import Publisher
from tests.soak.records import read_records

Build = Callable[[str, Sequence[int]], Any]
"""Makes the workflow of a publisher's jobs of these numbers, the last one is that of its end."""


def send(publisher: Publisher, queues: Sequence[str], build: Build, spread: bool = False) -> None:
    """Enqueue a workflow with a job in each queue; the last one is that of its end."""
    flow = f"{publisher.name}-flow{publisher.number()}"
    numbers = [
        # which of its jobs has which id is not for the soak to know
        publisher.sent(queue, flow=flow, place=place, id="")
        for place, queue in enumerate(queues)
    ]
    facts = {"by": publisher.name, "jobs": numbers, "queue": queues[-1], "spread": spread}
    publisher.record("flow", scenario=publisher.scenario, flow=flow, **facts)
    _store(publisher, flow, facts, build)


def resume(publisher: Publisher, build: Build) -> None:
    """Enqueue again what earlier lives of the publisher sent and got no answer for."""
    sent, answered = {}, set()
    for record in read_records(publisher.record_folder):
        if record["what"] == "flow" and record["scenario"] == publisher.scenario:
            sent[record["flow"]] = record
        elif record["what"] == "flow answered":
            answered.add(record["flow"])
    for flow, record in sent.items():
        if flow not in answered:
            _store(publisher, flow, record, build)


def _store(publisher: Publisher, flow: str, facts: dict[str, Any], build: Build) -> None:
    """Enqueue it, again and again while the outcome is unknown."""
    queue = publisher.queue(facts["queue"])
    while True:
        answer = "accepted"
        try:
            queue.enqueue_workflow(
                build(facts["by"], facts["jobs"]), id=flow, spread=facts["spread"]
            )
        except errors.WorkflowEnded:
            answer = "refused"  # a part was refused before, and the others were cancelled
        except errors.RedisUnavailable:
            if publisher.over.wait(PAUSE_S):
                return  # the next life goes on
            continue
        except Exception as error:
            publisher.failed([publisher.number()], error)
            answer = "refused"
        break
    for number in facts["jobs"]:
        publisher.record(answer, publisher=facts["by"], number=number, id="")
    publisher.record("flow answered", flow=flow, answer=answer)


PAUSE_S = 0.2
