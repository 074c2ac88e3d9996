"""Tests of the test: faults planted in the policy of bounded queues, and where it is asked, are
found."""

import redis

from tests.property.bounded import BoundedMachine
from tests.property.planted import NEXT, PULL, Fault, Step, each, is_found, settle

FIT = "policies/bounded/fit.lua"
GRANTS = "include/room/grants.lua"


def begin(
    limit: int,
    *,
    ready: int,
    resume: int = 80,
    held: bool = False,
    blocks: bool = True,
    size: int = 0,
) -> Step:
    """A queue with this limit and so many jobs, and one consumer with room for one."""
    said = {"consumers": [(0, (1, 0))], "ready": ready, "later": False, "first": True}
    return "begin", {**said, "bound": (limit, blocks, resume, held, size)}


def enqueue(jobs: int = 1, delay: int = 0) -> Step:
    return "enqueue", {"jobs": [(4, delay, 0, 0, 1)] * jobs, "immediate": False}


def ask(producer: int = 0, jobs: int = 1, more: int = 0) -> Step:
    return "ask", {"pick": producer, "jobs": jobs, "more": more}


CANCEL = ("cancel", {"pick": 0, "held": False})


FAULTS = [
    Fault(
        "cancelled jobs that no head has passed count",
        "include/order/depth.lua",
        "(tonumber(blocked) or 0)\n    - (tonumber(marked) or 0)",
        "(tonumber(blocked) or 0)",
        (begin(1, ready=1, blocks=False), CANCEL, enqueue()),
    ),
    Fault(
        "scheduled jobs do not count",
        "include/order/depth.lua",
        "local total = redis.call('ZCARD', base .. 'scheduled') + ",
        "local total = ",
        (begin(1, ready=0, blocks=False), enqueue(delay=3000), enqueue(delay=3000)),
    ),
    Fault(
        "dead letters count where held jobs do",
        "include/order/depth.lua",
        " - redis.call('ZCARD', base .. 'dead')",
        "",
        (begin(2, ready=1, held=True), PULL, settle("reject"), enqueue(2)),
    ),
    Fault(
        "others take what is kept",
        FIT,
        " - look.granted + mine",
        "",
        (begin(2, ready=1, resume=100), ask(), enqueue()),
    ),
    Fault(
        "a job overtakes producers that wait",
        FIT,
        "not look.blocks or redis.call('ZCARD', base .. 'producers') == 0",
        "true",
        (begin(5, ready=3, resume=40), ask(), enqueue()),
    ),
    Fault("a grant that was used is kept", "enqueue.lua", "if request.used or", "if"),
    Fault(
        "a pull makes room and no producer is notified",
        "include/pull/pull.lua",
        "if taken.crowded then",
        "if false then",
        (begin(1, ready=1), ask(), PULL),
    ),
    Fault(
        "a settle of the only job makes room and no producer is notified",
        "include/settle/fast_path.lua",
        "  if not seen or crowded then return true end\n",
        "",
        (begin(1, ready=3), PULL, NEXT, ask(), NEXT),
    ),
    Fault(
        "a cancel makes room and no producer is notified",
        "cancel.lua",
        "--- @each vacated(base, { now = queue.now })",
        "",
        (begin(1, ready=1), ask(), CANCEL),
    ),
    Fault(
        "a purge makes room and no producer is notified",
        "include/finish/end.lua",
        "--- @each vacated(base, { now = queue.now })",
        "",
        (begin(1, ready=1), ask(), ("purge", {"scheduled": True, "limit": 500})),
    ),
    Fault(
        "a higher limit makes room and no producer is notified",
        "configure.lua",
        "--- @each vacated(base, { now = queue.now })",
        "",
        (begin(1, ready=1), ask(), ("set_bound", {"bound": (5, True, 100, False, 0)})),
    ),
    Fault(
        "room of a grant that is over stays counted",
        GRANTS,
        "'granted', -jobs)",
        "'granted', '0')",
    ),
    Fault(
        "the newest producer goes first",
        GRANTS,
        "redis.call('ZRANGE', base .. 'producers'",
        "redis.call('ZREVRANGE', base .. 'producers'",
        (begin(1, ready=1), ask(0), ask(1), PULL),
    ),
    Fault(
        "more is promised than fits",
        GRANTS,
        "open and wish <= free",
        "open",
        (begin(2, ready=1, resume=100), ask(jobs=2)),
    ),
    Fault(
        "who gives up keeps the room",
        "policies/bounded/room.lua",
        "{ now = now, used = producer }",
        "{ now = now }",
        found=(
            (
                "begin",
                {
                    "consumers": [(0, (10, 0)), (1, (2, 0)), (0, (1, 0))],
                    "first": False,
                    "later": True,
                    "ready": 0,
                },
            ),
            ("ask", {"pick": 6, "jobs": 1}),
            ("give_up", {"pick": 4}),
        ),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, BoundedMachine)
