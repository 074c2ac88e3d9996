"""Tests of the test: faults planted in the policy of sorted queues are found."""

import redis

from rqueue.protocol.policies import Kind
from tests.property.planted import (
    HEAR,
    PULL,
    Fault,
    Step,
    begin,
    each,
    is_found,
    pass_time,
    settle,
)
from tests.property.selecting import SelectingMachine

POLICY = "policies/sorted.lua"


def put(*keys: str, delay: int = 0) -> Step:
    """Jobs with these sort keys, enqueued together."""
    jobs = [(4, delay, 0, 0, 1)] * len(keys)
    return "enqueue", {"jobs": jobs, "immediate": False, "names": keys}


def change(level: int | None) -> Step:
    """The first job gets another level, None: is to come to the front."""
    return "reorder", {"chosen": [0], "level": level}


FAULTS = [
    Fault(
        "keys are not looked at",
        POLICY,
        "return key and 's' .. key ..",
        "return key and 's' .. #key ..",
        (begin((1, 0)), put("b", "a", "b")),
    ),
    Fault(
        "of equal keys none is first",
        POLICY,
        "string.format('%014d', job.position) .. job.id",
        "string.format('%014d', 99 - job.position) .. job.id",
        (begin((0, 0)), put("a", "a")),
    ),
    Fault(
        "levels are not looked at",
        "include/order/score.lua",
        "return string.format('%d', 9 - level) .. '99999999999999'",
        "return string.format('%d', 5) .. '99999999999999'",
        (begin((0, 0)), put("b"), put("a"), change(9)),
    ),
    Fault(
        "jobs with a key go before those without",
        "include/order/score.lua",
        ".. '99999999999999'",
        ".. '00000000000000'",
        (begin((0, 0)), put("", "a")),
    ),
    Fault(
        "what is due goes to a list",
        "include/schedule/promote.lua",
        """  --- @include "schedule/promote_shelf"
  members = promote_shelf(base, queue, members)
""",
        "",
        (begin((1, 0)), put("b", "a", delay=800), pass_time(900), PULL),
    ),
    Fault(
        "one that is taken stands on",
        "include/pull/merge.lua",
        "redis.call('ZREMRANGEBYRANK', keys[1], '0', string.format('%d', count - 1))",
        "do end",
        (begin((1, 0)), put("b", "a"), PULL),
    ),
    Fault(
        "the id of a member is not found",
        "include/order/member.lua",
        "+ MEMBER_DIGITS + 1",
        "+ MEMBER_DIGITS",
        (begin((1, 0)), put("b", "a"), PULL),
    ),
    Fault(
        "one that was cancelled leaves a mark",
        POLICY,
        "== 1 and 'ready' or nil",
        "== 2 and 'ready' or nil",
        (begin((0, 0)), put("a"), ("cancel", {"pick": 0, "held": False})),
    ),
    Fault(
        "one is brought to the front",
        POLICY,
        "return sorted_key(job) ~= nil or nil",
        "return nil",
        (begin((0, 0)), put("a", "b"), change(None)),
    ),
    Fault(
        "a consumer is not notified of jobs with keys",
        "include/enqueue/telling.lua",
        "if step.waiters[1] and step.ready > 0 and not step.taker then",
        "if step.waiters[1] and step.ready > 0 and not step.taker"
        " and not (step.plan and step.plan.placed) then",
        (begin((1, 0), (1, 0)), put("b", "a")),
    ),
    Fault(
        "what is released goes to a list",
        "include/order/reinsert.lua",
        "  --- @each jobs = shelf(base, queue, jobs)\n",
        "",
        (begin((1, 0)), put("b"), HEAR, settle("release")),
    ),
]


LABELLED = Fault(
    "in a class keys are not looked at",
    "policies/selectors.lua",
    "of_class[#of_class + 2] = standing_of(job)",
    "of_class[#of_class + 2] = '5', schedule_member(job, job.id)",
    (
        begin((0, 0)),
        (
            "enqueue_labelled",
            {"jobs": [((4, 0, 0, 0, 1), 1)] * 2, "immediate": False, "names": ("b", "a")},
        ),
    ),
)


RING = Fault(
    "the first key makes room",
    "include/order/lowest.lua",
    "redis.call('ZREVRANGEBYSCORE', key",
    "redis.call('ZRANGEBYSCORE', key",
    (begin((0, 0)), put("b", "a", "c")),
)


def test_a_fault_of_rings_is_found(client: redis.Redis) -> None:
    is_found(RING, client, kinds=[Kind.of(["ring", "sorted"])])


def test_a_fault_of_classes_is_found(client: redis.Redis) -> None:
    kinds = [Kind.of(["selectors", "sorted"])]
    is_found(LABELLED, client, SelectingMachine, kinds)


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["sorted"])])
