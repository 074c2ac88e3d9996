"""Tests of the test: faults planted in the ways that jobs leave by hand are found."""

import redis

from rqueue.protocol.policies import Kind
from tests.property.planted import PULL, Fault, Step, begin, each, enqueue, is_found


def take_out(how: str, *chosen: int) -> Step:
    return "take_out", {"chosen": list(chosen), "how": how}


def several(number: int) -> Step:
    """So many jobs of the group "a"."""
    jobs, names = [(4, 0, 0, 0, 1)] * number, ["a"] * number
    return "enqueue", {"jobs": jobs, "immediate": False, "names": names}


PLACES = "include/finish/leave.lua"

FAULTS = [
    Fault(
        "a job that a consumer holds is moved",
        PLACES,
        "    return nil, 'held'\n",
        "    job.was = 'scheduled'\n",
        (begin((1, 0), ready=2), PULL, take_out("move", 0)),
    ),
    Fault(
        "a job that is moved stays in the schedule",
        PLACES,
        "    redis.call('ZREM', base .. 'scheduled', job.member)\n",
        "",
        (begin(), enqueue(delay=800), take_out("move", 0)),
    ),
    Fault(
        "a job that leaves the middle of its list leaves its element",
        PLACES,
        "if not order_replace(base, job) then return false end",
        "",
        (begin(ready=3), take_out("reject", 1)),
    ),
    Fault(
        "what stands in the places of those that left is not counted",
        "move.lua",
        "if queue.marks then count_up(meta, 'marked', queue.marks) end",
        "",
        (begin(ready=3), take_out("move", 1)),
    ),
    Fault(
        "a job that was moved is not on its way",
        "move.lua",
        "outgoing_add(base, entries)",
        "",
        (begin(ready=2), take_out("move", 0)),
    ),
    Fault(
        "a job that was moved leaves no record",
        "move.lua",
        "records_write(base, queue, records)",
        "",
        (begin(ready=2), take_out("move", 0)),
    ),
    Fault(
        "a job that was rejected by hand leaves no record",
        "reject.lua",
        "records_write(base, queue, records)",
        "",
        (begin(ready=2), take_out("reject", 1)),
    ),
    Fault(
        "a job that was expired by hand stays dead or alive",
        "expire.lua",
        "  end_jobs(base, queue, ids, 'E', 'expired')\n",
        "",
        (begin(ready=2), take_out("expire", 0)),
    ),
]

OF_GROUPS = [
    Fault(
        "a job that was moved keeps its turn",
        "move.lua",
        "--- @each pass(base, queue, gone)",
        "",
        (begin(), several(2), take_out("move", 0)),
    ),
    Fault(
        "a job that was rejected by hand keeps its turn",
        "reject.lua",
        "--- @each pass(base, queue, gone)",
        "",
        (begin(), several(2), take_out("reject", 0)),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client)


@each(OF_GROUPS)
def test_a_fault_with_groups_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["groups"])])
