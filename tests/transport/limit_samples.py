"""Samples of the calls that look at limits, for `command_samples`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rqueue.protocol.call import CommandCall
from rqueue.protocol.commands import limit_notes
from rqueue.protocol.keys import QueueKeys


@dataclass(frozen=True)
class Sample:
    """What a call answers. The clock stands, so that `now` is known."""

    call: CommandCall[Any]
    expected: Any


def fill(client: Any, keys: QueueKeys, odd: bytes) -> None:
    """Limits of which permits are out, and that are set and waited for."""
    client.hset(keys.permits, mapping={"l": 2, "broken": "?"})
    client.hset(keys.claims, mapping={"j1": "l", odd: "l m"})
    client.hset(keys.limits, mapping={"l": 3, "m": "?"})
    client.sadd(keys.reopened, "m")


def samples(keys: QueueKeys, empty: QueueKeys, odd: str) -> dict[str, list[Sample]]:
    return {
        "permits_state": [
            Sample(
                limit_notes.permits_state(keys),
                limit_notes.PermitsState(
                    {"l": 2, "broken": -1},
                    {"j1": ["l"], odd: ["l", "m"]},
                    {"l": 3},
                    {"g1"},
                    {"m"},
                ),
            ),
            Sample(
                limit_notes.permits_state(empty),
                limit_notes.PermitsState({}, {}, {}, set(), set()),
            ),
        ],
        "limit_use": [
            Sample(
                limit_notes.limit_use(keys, ["l", "l=a", "n"]),
                [
                    limit_notes.LimitUse(2, 3),
                    limit_notes.LimitUse(0, 3),
                    limit_notes.LimitUse(0, None),
                ],
            ),
            Sample(limit_notes.limit_use(keys, []), []),
        ],
    }
