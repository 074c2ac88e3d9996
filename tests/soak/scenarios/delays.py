"""Delayed jobs begin when they are due, never before."""

from __future__ import annotations

from rqueue.tasks.options import Options
from tests.soak.cases import never_early
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario


def enqueue(publisher: Publisher) -> None:
    """A job for a moment of the next two seconds."""
    delay = publisher.random.randrange(1, 2000)
    publisher.send("delays", Options(delay_ms=delay), delay=delay)


SCENARIO = Scenario("delays", {"delays": {}}, enqueue, {"too early": never_early("delays")}, rate=3)
