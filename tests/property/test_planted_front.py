"""Tests of the test: faults planted in the policy of jobs that come to the front are found."""

import redis

from rqueue.protocol.policies import Kind
from tests.property.planted import (
    HEAR,
    PULL,
    Fault,
    Step,
    begin,
    each,
    enqueue,
    is_found,
    pass_time,
    settle,
)

POLICY = "policies/front.lua"
SHELF = "policies/front/shelf.lua"
DUE = "include/order/due.lua"
FIRST_AT_ONCE = (begin((0, 0)), enqueue(), enqueue())


def several(*delays: int) -> Step:
    jobs = [(4, delay, 0, 0, number) for number, delay in enumerate(delays, 1)]
    return "enqueue", {"jobs": jobs, "immediate": False}


LIFO: Step = ("set_lifo", {"lifo": True})

FAULTS = [
    Fault(
        "of two the first one stays the first",
        DUE,
        "redis.call('LPUSH', base .. due_list(level)",
        "redis.call('RPUSH', base .. due_list(level)",
        FIRST_AT_ONCE,
    ),
    Fault(
        "its due time does not say where it stands",
        SHELF,
        "job.due = order_front(base, queue.now, level)",
        "job.due = queue.now",
        FIRST_AT_ONCE,
    ),
    Fault(
        "those that come together have one place",
        SHELF,
        "job.due = math.max(1, first[level] - 1)",
        "job.due = first[level]",
        (begin((0, 0)), LIFO, several(0, 0)),
    ),
    Fault(
        "what is due with it goes before it",
        SHELF,
        "if before[level] and before[level] <= job.due then",
        "if false then",
        (begin((2, 0)), several(900, 800), pass_time(1000), PULL),
    ),
    Fault(
        "no pull looks there",
        DUE,
        "  redis.call('HSET', base .. 'meta', 'promoted', '1')\n",
        "",
        (begin((2, 0), ready=1), PULL),
    ),
    Fault(
        "it comes to the front each time that it comes back",
        SHELF,
        "string.gsub(job.tags, '|f%d', '', 1)",
        "job.tags",
        FIRST_AT_ONCE,
    ),
    Fault(
        "so does one that was delivered directly",
        POLICY,
        "return (string.gsub(value, '^([^;]*)|f%d', '%1', 1))",
        "return value",
        (begin((2, 0)), PULL, enqueue(), HEAR, settle("release")),
    ),
    Fault(
        "in a queue that does so with all jobs a lone one does not",
        POLICY,
        "return said or front_lifo(base)",
        "return said",
        (begin((0, 0)), LIFO, ("enqueue", {"jobs": [(4, 0, 0, 0, 2)], "immediate": False})),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["front"])])
