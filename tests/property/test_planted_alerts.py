"""Tests of the test: faults planted in alerts are found."""

import redis
from hypothesis import strategies as st
from hypothesis.stateful import rule

from rqueue.protocol import commands
from rqueue.protocol.commands.alert_notes import kept_alerts
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.transport.redis_client import execute
from tests.property.machine import Machine
from tests.property.planted import HEAR, Fault, Step, begin, each, enqueue, is_found, settle


class AlertingMachine(Machine):
    """An alert comes with each step that brings the queue to its depth, and with no other."""

    kinds = (PLAIN, Kind.of(["groups"]))
    threshold, depth = 0, 0

    @rule(threshold=st.integers(0, 3))
    def set_alert_depth(self, threshold: int) -> None:
        self.run(commands.configure(self.keys, {"alert_depth": threshold}))
        self.threshold = threshold

    def holds(self) -> None:
        super().holds()
        there = len(self.model.jobs) - len(self.model.dead)
        self.expected: list[tuple[int, int]] = getattr(self, "expected", [])
        if self.depth < self.threshold <= there:
            self.expected.append((there, self.threshold))
        self.depth = there
        found = execute(self.client, kept_alerts(self.keys))
        assert [(its.depth, its.threshold) for its in found] == self.expected


def at(threshold: int) -> Step:
    return "set_alert_depth", {"threshold": threshold}


LIVE_AGAIN: Step = ("dead_letters", {"chosen": [0], "live": True})
ONE_DEAD = (begin((1, 0)), enqueue(), HEAR, settle("reject"))
FAULTS = [
    Fault(
        "each arrival is an alert",
        "policies/alerts.lua",
        "before >= most or ",
        "",
        (begin((1, 0)), at(1), enqueue(), enqueue()),
    ),
    Fault(
        "one job alone is none",
        "enqueue.lua",
        "  if reply then\n    --- @each grown(base, now, depth)",
        "  if reply then",
        (begin((1, 0)), at(2), enqueue(), enqueue()),
    ),
    Fault(
        "dead letters count",
        "include/order/depth.lua",
        " - redis.call('ZCARD', base .. 'dead')",
        "",
        (*ONE_DEAD, at(2), enqueue()),
    ),
    Fault(
        "what lives again has not arrived",
        "requeue.lua",
        "--- @each grown(base, queue.now, depth)",
        "",
        (*ONE_DEAD, at(1), LIVE_AGAIN),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, AlertingMachine)
