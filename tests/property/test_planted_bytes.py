"""Tests of the test: faults planted where queues count bytes, and in what asks them, are found."""

import redis

from rqueue.protocol.policies import Kind
from tests.property.bounded import BoundedMachine
from tests.property.planted import (
    HEAR,
    PULL,
    Fault,
    begin,
    each,
    enqueue,
    is_found,
    make_ready,
    pass_time,
    retry_later,
    settle,
)
from tests.property.test_planted_bounded import ask
from tests.property.test_planted_bounded import begin as bound
from tests.property.test_planted_ring import put

MAX_BYTES, RING_BYTES = "policies/max_bytes.lua", "policies/ring_bytes.lua"
FIT, GRANTS = "policies/bounded/fit.lua", "include/room/grants.lua"
SIZE_PASS = "include/size/pass.lua"
PASS = "if not job.again then ids[#ids + 1] = job.id end"
CANCEL = ("cancel", {"pick": 0, "held": False})

BOUNDED = [
    Fault(
        "what is scheduled again takes no room",
        MAX_BYTES,
        "if where ~= 'held' or",
        "if where ~= 'held' and where ~= 'scheduled' or",
        (bound(5, ready=0, size=300), enqueue(), HEAR, retry_later("old")),
    ),
    Fault(
        "what a consumer takes stays counted",
        MAX_BYTES,
        "if not room_held_counts(base) then size_over(base, ids) end",
        "",
        (bound(5, ready=2, size=300), PULL),
    ),
    Fault(
        "what a consumer holds stops to count",
        MAX_BYTES,
        "if not room_held_counts(base) then size_over(base, ids) end",
        "size_over(base, ids)",
        (bound(5, ready=2, held=True, size=300), PULL),
    ),
    Fault(
        "what is done stays counted",
        MAX_BYTES,
        "  size_over(base, gone)\n",
        "",
        (bound(5, ready=2, held=True, size=300), PULL, settle("ack")),
    ),
    Fault(
        "cancelled jobs of the schedule stay counted",
        SIZE_PASS,
        PASS,
        "",
        (bound(5, ready=0, size=300), enqueue(delay=3000), CANCEL),
    ),
    Fault(
        "what was there before does not count",
        "include/size/build.lua",
        "    size_note(base, stored)\n",
        "",
        (bound(5, ready=2, size=300),),
    ),
    Fault(
        "dead letters of before count",
        "include/size/build.lua",
        "others[id] = true end\n  for _, consumer",
        "end\n  for _, consumer",
        (
            bound(5, ready=2),
            PULL,
            settle("reject"),
            ("set_bound", {"bound": (5, True, 80, False, 300)}),
        ),
    ),
    Fault(
        "a byte too many is let in",
        FIT,
        "plan.bytes <= free_bytes and (mine",
        "plan.bytes <= free_bytes + 9 and (mine",
        (bound(5, ready=2, blocks=False, size=25), enqueue()),
    ),
    Fault(
        "others take what is kept",
        FIT,
        " - look.granted_bytes + mine_bytes",
        "",
        (bound(5, ready=1, resume=100, size=25), ask(more=5), enqueue()),
    ),
    Fault(
        "a grant is not its producer's own",
        FIT,
        "if plan.jobs <= mine and plan.bytes <= mine_bytes then return nil end",
        "mine_bytes = 0",
        (bound(5, ready=1, resume=100, size=25), ask(more=10), ask()),
    ),
    Fault(
        "more is promised than fits",
        GRANTS,
        "open and wish <= free and size <= free_bytes",
        "open and wish <= free",
        (bound(5, ready=1, resume=100, size=25), ask(more=15)),
    ),
    Fault(
        "room of a grant that is over stays counted",
        GRANTS,
        "count_up(base .. 'meta', 'granted_bytes', string.format('%d', -bytes))",
        "count_up(base .. 'meta', 'granted_bytes', '0')",
        (bound(5, ready=1, resume=100, size=100), ask(), ask()),
    ),
    Fault(
        "who waits for more than the limit waits for ever",
        GRANTS,
        "wish > look.most or size > look.most_bytes then",
        "wish > look.most then",
        (
            bound(5, ready=2, size=100, resume=100),
            ask(more=85),
            ("set_bound", {"bound": (5, True, 80, False, 25)}),
        ),
    ),
]
SMALL = ("set_ring", {"ring": 0, "size": 25})
RINGS = [
    Fault(
        "bytes displace nothing",
        "policies/ring.lua",
        " or look.bytes + (plan.bytes or 0) > look.most_bytes",
        "",
        (begin((0, 0)), SMALL, put(4), put(4), put(4)),
    ),
    Fault(
        "too few are displaced",
        "policies/ring/trim.lua",
        "while bytes > look.most_bytes and",
        "while bytes > look.most_bytes + 9 and",
        (begin((0, 0)), SMALL, put(4), put(4), put(4)),
    ),
    Fault(
        "what never fits displaces the others",
        RING_BYTES,
        "plan.largest <= look.most_bytes or",
        "true or",
        (begin((0, 0)), SMALL, put(4), enqueue(padding=60)),
    ),
    Fault(
        "what is due takes no room",
        "include/schedule/promote.lua",
        "  --- @each ripe(base, members)\n",
        "",
        (begin((0, 0)), SMALL, enqueue(delay=800), pass_time(1000), make_ready(0)),
    ),
    Fault(
        "what comes back takes no room",
        "include/finish/unfinished.lua",
        "    --- @each weigh(base, queue.now, stored, where)\n",
        "",
        (begin((3, 0)), SMALL, enqueue(), HEAR, settle("release")),
    ),
    Fault(
        "what a consumer takes stays counted",
        RING_BYTES,
        "local function ring_bytes_taken(base, ids)\n  size_over(base, ids)",
        "local function ring_bytes_taken(base, ids)",
        (begin((3, 0), ready=2), PULL),
    ),
    Fault(
        "what is scheduled takes room",
        RING_BYTES,
        "if not due or tonumber(due) <= now then",
        "if true then",
        (begin((0, 0)), SMALL, enqueue(delay=800)),
    ),
]


@each(BOUNDED)
def test_a_fault_in_a_bounded_queue_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, BoundedMachine)


@each(RINGS)
def test_a_fault_in_a_ring_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["ring_bytes"])])
