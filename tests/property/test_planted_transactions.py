"""Tests of the test: faults planted in transactions are found."""

from typing import Any

import redis

from tests.property.planted import PULL, Fault, begin, each, is_found


def commit(
    *outcomes: tuple[int, str], jobs: int = 1, foreign: bool = False
) -> tuple[str, dict[str, Any]]:
    new = [(4, 0, 0, "")] * jobs
    return "commit", {"pick": 0, "outcomes": [*outcomes], "jobs": new, "foreign": foreign}


FAULTS = [
    Fault(
        "a job that others have does not refuse the step",
        "commit.lua",
        "if #stale > 0 then",
        "if false then",
        (begin((1, 0), ready=2), PULL, commit((0, "ack"), foreign=True)),
    ),
    Fault(
        "what is settled stays held",
        "commit.lua",
        "  local settled = settle_step(KEYS, arguments)",
        "  local settled = { 0, redis.call('HGET', base .. 'consumer:' .. consumer, 'state') }",
        (begin((2, 0), ready=2), PULL, commit((0, "ack"))),
    ),
    Fault(
        "what is to follow is not enqueued",
        "commit.lua",
        "if count > 0 then\n  local arguments",
        "if false then\n  local arguments",
        (begin((2, 0), ready=2), PULL, commit((0, "ack"), jobs=2)),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client)
