"""Tests of the test: faults planted in the policy of jobs that keep their place are found."""

import redis

from rqueue.protocol.policies import Kind
from tests.property.planted import (
    PULL,
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

POLICY = "policies/hold.lua"
DUE = (enqueue(delay=800), enqueue(), pass_time(900))


def of_group(delay: int) -> Step:
    jobs = [(4, delay, 0, 0, 1)]
    return "enqueue", {"jobs": jobs, "immediate": False, "names": ["a"] * 4}


FAULTS = [
    Fault(
        "it stands at the head when its time has come",
        POLICY,
        "job.due, job.tags = 0, string.gsub(job.tags, '|h', '|h1', 1)",
        "job.tags = string.gsub(job.tags, '|h', '|h1', 1)",
        (begin((0, 0)), *DUE, make_ready()),
    ),
    Fault(
        "its place is not that of its position",
        POLICY,
        "or score_text(member)\n",
        "or string.format('%d', score_of(job.level, 1))\n",
        (begin((1, 0)), enqueue(), *DUE, make_ready()),
    ),
    Fault(
        "a pull does not look where it stands",
        POLICY,
        "  return { base .. 'heads', lists = true }",
        "  return { lists = true }",
        (begin((2, 0)), *DUE, PULL),
    ),
    Fault(
        "cancelled, it stays in its place",
        POLICY,
        "if hold_mine(job) and redis.call('ZREM'",
        "if false and redis.call('ZREM'",
        (begin((0, 0)), *DUE, make_ready(), ("cancel", {"pick": 0, "held": False})),
    ),
    Fault(
        "what comes back has no place beside the lists",
        POLICY,
        "return job.tags and string.find(job.tags, '|h', 1, true)",
        "return job.tags and string.find(job.tags .. '|', '|h|', 1, true)",
        (begin((1, 0)), enqueue(delay=800), pass_time(900), PULL, settle("release")),
    ),
]
OF_GROUPS = [
    Fault(
        "one of a group that was held keeps the turn for ever",
        "policies/groups.lua",
        "local group = values[i] and match(values[i], GROUPS.stored)",
        "local group = values[i] and match(values[i], '^[%d,-]*|g([^|;]*)')",
        (begin((1, 0)), of_group(800), pass_time(900), PULL, settle("ack")),
    ),
    Fault(
        "one of a group passes its turn",
        POLICY,
        " and not string.find(job.tags, '|g', 1, true)",
        "",
        (begin((1, 0)), of_group(0), of_group(800), pass_time(900), make_ready()),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["hold"])])


@each(OF_GROUPS)
def test_a_fault_of_groups_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["hold", "groups"])])
