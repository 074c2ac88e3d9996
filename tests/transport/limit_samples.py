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
    client.hset(keys.permits, mapping={"l": 2, "@r": 3, "broken": "?"})
    client.hset(keys.claims, mapping={"j1": "l @r*3", odd: "l @m!2"})
    client.hset(keys.limits, mapping={"l": 3, "@r": "9/1000+5", "m": "?"})
    client.hset(keys.declared, mapping={"n": "170 4", "l": "170 9", "@m": "170 8/1000+1"})
    client.zadd(keys.tokens_due, {"@r": 9300})
    client.zadd(keys.group("@r"), {"m11": 1, "m12": 2})
    client.sadd(keys.reopened, "m")
    client.hset(keys.meta, "corrected_by", "w1")


def samples(keys: QueueKeys, empty: QueueKeys, odd: str) -> dict[str, list[Sample]]:
    return {
        "permits_state": [
            Sample(
                limit_notes.permits_state(keys),
                limit_notes.PermitsState(
                    {"l": 2, "@r": 3, "broken": -1},
                    {"j1": {"l": 1, "@r": 3}, odd: {"l": 1, "@m": 0}},
                    {"l": "3", "@r": "9/1000+5"},
                    {"n": "4", "l": "9", "@m": "8/1000+1"},
                    {"g1"},
                    {"m"},
                    {"@r": 9300.0},
                    "w1",
                ),
            ),
            Sample(
                limit_notes.permits_state(empty),
                limit_notes.PermitsState({}, {}, {}, {}, set(), set(), {}, ""),
            ),
        ],
        "limit_use": [
            Sample(
                limit_notes.limit_use(keys, ["l", "l=a", "@r", "n"], b"m12"),
                [
                    limit_notes.LimitUse(False, 2, "3", 0, 0),
                    limit_notes.LimitUse(False, 0, "", 0, 0),
                    limit_notes.LimitUse(True, 3, "9/1000+5", 9300.0, 1),
                    limit_notes.LimitUse(False, 0, "4", 0, 0),
                ],
            ),
            Sample(limit_notes.limit_use(keys, [], b"m12"), []),
        ],
    }
