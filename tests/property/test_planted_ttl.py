"""Tests of the test: each of these faults in what becomes of expired jobs is found."""

import redis

from rqueue.protocol.policies import Kind
from tests.property.planted import (
    HEAR,
    NEXT,
    OBEY,
    PAUSE,
    PULL,
    RESUME,
    Fault,
    Step,
    begin,
    each,
    enqueue,
    is_found,
    pass_time,
    renew,
    settle,
)
from tests.property.timed import TimedMachine


def enqueue_timed(padding: int = 0, ttl: int = 0) -> Step:
    return "enqueue_timed", {"jobs": [((4, 0, padding, 0, 1), ttl)], "immediate": False}


def set_ttl(most: int = 0, kept_dead: bool = False) -> Step:
    return "set_ttl", {"ttl": (0, 0, most), "kept_dead": kept_dead}


def in_turn(*windows: int) -> tuple[Step, ...]:
    """Consumers with windows of so many jobs, and two jobs of a group: the first one expires."""
    jobs = [((4, 0, 0, 0, 1), 300), ((4, 0, 0, 0, 1), 0)]
    start = begin(*((jobs, 0) for jobs in windows))[1] | {"kind": Kind.of(["groups"])}
    return (
        ("begin", start),
        ("enqueue_timed", {"jobs": jobs, "immediate": False, "names": ["a", "a"]}),
    )


def expired_heads(number: int, *names: str) -> tuple[Step, ...]:
    """So many groups whose first jobs are expired, more than one sweep takes (of one ms it takes
    those first whose ids are less: the last one is j9, of g9); then jobs of these groups."""
    jobs = [((4, 0, 0, 0, 1), 300)] * number + [((4, 0, 0, 0, 1), 0)] * len(names)
    groups = [*(f"g{n}" for n in range(number)), *names]
    start = begin((3, 0))[1] | {"kind": Kind.of(["groups"])}
    return (
        ("begin", start),
        set_ttl(kept_dead=True),
        ("enqueue_timed", {"jobs": jobs, "immediate": False, "names": groups}),
        pass_time(900),
    )


FAULTS = [
    Fault(
        "an expired job is delivered",
        "include/job/eligible.lua",
        "    if outcome then",
        "    if false then",
        (
            *(begin((1, 0)), PAUSE, enqueue_timed(ttl=300), pass_time(900)),
            *(RESUME, OBEY),
        ),
    ),
    Fault(
        "the fast path delivers what is expired",
        "include/settle/fast_path.lua",
        "--- @each overdue = overdue(base, now)",
        "",
        (
            *(begin((1, 0)), enqueue(), HEAR, NEXT, enqueue(), HEAR),
            *(enqueue_timed(ttl=300), pass_time(900), NEXT),
        ),
    ),
    Fault(
        "an expired job that comes back waits again",
        "include/finish/unfinished.lua",
        "--- @each over = eligible(value_header(job), queue.now)",
        "",
        (begin((1, 0)), enqueue_timed(ttl=300), HEAR, pass_time(900), settle("release")),
    ),
    Fault(
        "what is taken is expected to expire",
        "policies/ttl.lua",
        "local function ttl_taken(base, ids)",
        "local function ttl_taken(base, ids) do return end",
        found=(
            begin((2, 300), (3, 0), ready=4, first=False),
            ("obey", {"pick": 10}),
            (
                "join",
                {"lease": 6000, "mode": "acquire", "priority": 0, "slots": 2, "window": (10, 0)},
            ),
            ("take_out", {"chosen": [7, 3, 11], "how": "reject"}),
            ("obey", {"pick": 9}),
            (
                "settle",
                {
                    "pick": 10,
                    "others": 0,
                    "outcomes": [(8, "release", 800, "tail", True)],
                    "pull": True,
                    "window": None,
                },
            ),
            ("settle_one", {"pick": 2, "outcome": "retry", "place": 7, "return_to": "old"}),
            ("enqueue_timed", {"immediate": True, "jobs": [((4, 0, 60, -2, 3), 800)]}),
            ("purge_held", {"pick": 6, "chosen": [1, 6, 8, 8]}),
            (
                "join",
                {"lease": 6000, "mode": "browse", "priority": 0, "slots": 1, "window": (3, 150)},
            ),
            ("leave", {"pick": 10, "charged": [11, 6, 3], "dies": False}),
            ("obey", {"pick": 3}),
        ),
    ),
    Fault(
        "what is cancelled is expected to expire",
        "policies/ttl.lua",
        "local function ttl_left(base, ids)",
        "local function ttl_left(base, ids) do return end",
        found=(
            begin((2, 300), (3, 0), ready=4, first=False),
            (
                "enqueue_timed",
                {
                    "immediate": False,
                    "jobs": [
                        ((0, 0, 0, -2, 10), 3000),
                        ((4, 800, 60, -2, 6), 800),
                        ((4, 0, 0, -2, 7), 300),
                    ],
                },
            ),
            ("take_out", {"chosen": [7], "how": "reject"}),
        ),
    ),
    Fault(
        "what comes back is not expected to expire",
        "include/finish/unfinished.lua",
        "--- @each entered(base, queue.now, batch.waits)",
        "",
        found=(
            (
                "begin",
                {
                    "consumers": [(0, (10, 0))],
                    "everyday": True,
                    "first": False,
                    "later": True,
                    "ready": 4,
                },
            ),
            ("pull", {"pick": 6, "recall": False, "window": (3, 150)}),
            (
                "join",
                {"lease": 6000, "mode": "acquire", "priority": -1, "slots": 2, "window": (3, 300)},
            ),
            ("set_ttl", {"kept_dead": True, "ttl": (800, 0, 0)}),
            (
                "join",
                {"lease": 6000, "mode": "acquire", "priority": 0, "slots": 1, "window": (1, 300)},
            ),
            ("pass_time", {"ms": 7000}),
            (
                "join",
                {"lease": 6000, "mode": "acquire", "priority": 1, "slots": 2, "window": (2, 300)},
            ),
            (
                "enqueue_timed",
                {"immediate": False, "jobs": [((4, 3000, 0, 1, 2), 0), ((0, 800, 0, 0, 6), 300)]},
            ),
            ("pull", {"pick": 1, "recall": False, "window": (3, 0)}),
            ("renew", {"names": [2, 7]}),
        ),
    ),
    Fault(
        "what is due is not expected to expire",
        "include/schedule/promote_eligible.lua",
        "--- @each entered(base, queue.now, stored)",
        "",
        (
            *(begin((1, 0)), PAUSE, set_ttl(most=9000), enqueue(delay=800), enqueue(delay=800)),
            *(pass_time(900), RESUME, OBEY),
        ),
    ),
    Fault(
        "nobody sweeps in the supervisor's rounds",
        "include/consumer/maintenance.lua",
        "--- @each late = upkeep(base, queue)",
        "",
        (begin((0, 0)), enqueue_timed(ttl=300), pass_time(900), renew()),
    ),
    Fault(
        "a job expires in its last millisecond",
        "policies/ttl.lua",
        "tonumber(expires) < now then return",
        "tonumber(expires) <= now then return",
        (
            *(begin((1, 0)), enqueue(), HEAR),
            *(enqueue_timed(ttl=300), pass_time(300), settle("ack"), PULL),
        ),
    ),
    Fault(
        "the greatest time to live spares jobs that say nothing",
        "policies/ttl.lua",
        "if most > 0 and (ms == 0 or ms > most) then",
        "if most > 0 and ms > most then",
        (begin((0, 0)), set_ttl(most=2000), enqueue()),
    ),
    Fault(
        "a dead letter keeps its place among those that wait",
        "include/order/replace.lua",
        "redis.call('LSET', key, index, stand_in)",
        "",
        (
            *(begin((1, 0)), enqueue(), HEAR),
            set_ttl(kept_dead=True),
            *(enqueue_timed(ttl=300), pass_time(900), renew()),
        ),
    ),
    Fault(
        "who waits for the bytes of an expired job is not notified",
        "policies/ttl/dropped.lua",
        "wait_for_bytes_over(base, queue.now, ids, how.taker)",
        "",
        (
            begin((3, 150)),
            enqueue(padding=60),
            HEAR,
            enqueue_timed(padding=60, ttl=300),
            PULL,
            pass_time(900),
            renew(),
        ),
    ),
    Fault(
        "an expired job keeps the turn of its group",
        "policies/ttl/dropped.lua",
        "--- @each pass(base, queue, gone)",
        "",
        (*in_turn(0), pass_time(900), renew()),
    ),
    Fault(
        "the head of a group is delivered although it is expired",
        "include/pull/merge.lua",
        "  if not outcome then return value end",
        "  if true then return value end",
        (*expired_heads(17), PULL),
    ),
    Fault(
        "others overtake who stands behind expired heads",
        "include/pull/merge.lua",
        "if not stop and at > last and last == want then stop, cut = true, true end",
        "",
        (*expired_heads(20, *("g20", "")), PULL),
    ),
    Fault(
        "who waits is not notified of what a swept job made way for",
        "policies/ttl/upkeep.lua",
        "if not taker then notify_opened(base, queue) end",
        "",
        (*in_turn(1, 1), pass_time(900), renew()),
    ),
    Fault(
        "a consumer waits although what it found expired made way for others",
        "include/pull/pull.lua",
        "if others and to == 'interested' and redis.call(",
        "if false and redis.call(",
        (*expired_heads(17, "g9"), PULL),
    ),
    Fault(
        "a dead letter lives again and expires at once",
        "requeue.lua",
        "--- @each revived(base, queue.now, job)",
        "",
        (
            *(begin((0, 0)), set_ttl(kept_dead=True), enqueue_timed(ttl=300)),
            ("take_out", {"chosen": [0], "how": "expire"}),
            ("dead_letters", {"chosen": [0], "live": True}),
        ),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, TimedMachine)
