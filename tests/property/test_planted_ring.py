"""Tests of the test: faults planted in the policy of rings, and where it is asked, are found."""

import redis

from rqueue.protocol.policies import Kind
from tests.property.planted import (
    HEAR,
    Fault,
    Step,
    begin,
    each,
    enqueue,
    is_found,
    make_ready,
    pass_time,
    settle,
)

POLICY = "policies/ring.lua"
TRIM = "  --- @each left = trim(base, queue)\n"


def put(*levels: int) -> Step:
    """Jobs of these priorities, enqueued together."""
    jobs = [(level, 0, 0, 0, 1) for level in levels]
    return "enqueue", {"jobs": jobs, "immediate": False}


FAULTS = [
    Fault(
        "one more is let in",
        POLICY,
        "look.ready + plan.ready > look.most or",
        "look.ready + plan.ready > look.most + 1 or",
        (begin((0, 0)), put(4), put(4), put(4)),
    ),
    Fault(
        "the highest level makes room",
        "include/order/lowest.lua",
        "table.insert(levels, 1, level)",
        "table.insert(levels, level)",
        (begin((0, 0)), put(9), put(4), put(4)),
    ),
    Fault(
        "the newest makes room",
        "include/order/lowest.lua",
        "redis.call('LPOP'",
        "redis.call('RPOP'",
        (begin((0, 0)), put(4), put(4), put(4)),
    ),
    Fault(
        "what was cancelled takes room",
        POLICY,
        "unlabelled_count(base) - (tonumber(row[2]) or 0)",
        "unlabelled_count(base)",
        (begin((0, 0)), put(4), put(4), ("cancel", {"pick": 0, "held": False}), put(4)),
    ),
    Fault(
        "consumers are notified of jobs of a batch that make room",
        "include/enqueue/entry.lua",
        "    step.ready = math.min(step.ready, left)\n",
        "",
        (begin((1, 0), (1, 0), (1, 0)), put(4, 4, 4)),
    ),
    Fault(
        "what its consumer releases overfills the ring",
        "include/settle/unfinished.lua",
        TRIM,
        "",
        (begin((1, 0)), enqueue(), HEAR, put(4), put(4), settle("release")),
    ),
    Fault(
        "what a consumer leaves behind overfills the ring",
        "include/finish/release.lua",
        TRIM,
        "",
        (
            begin((1, 0)),
            enqueue(),
            HEAR,
            put(4),
            put(4),
            ("leave", {"pick": 0, "dies": False, "charged": []}),
        ),
    ),
    Fault(
        "what is due overfills the ring",
        "include/schedule/promote.lua",
        TRIM,
        "",
        (begin((0, 0)), put(4), put(4), enqueue(delay=800), pass_time(900), make_ready()),
    ),
    Fault(
        "a dead letter that lives again overfills the ring",
        "requeue.lua",
        TRIM,
        "",
        (
            begin((1, 0)),
            enqueue(),
            HEAR,
            settle("reject"),
            ("leave", {"pick": 0, "dies": False, "charged": []}),
            put(4),
            put(4),
            ("dead_letters", {"chosen": [0], "live": True}),
        ),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["ring"])])
