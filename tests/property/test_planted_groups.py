"""Tests of the test: faults planted in the policy of groups, and where it is asked, are found."""

import redis

from rqueue.protocol.policies import Kind
from tests.property.planted import (
    HEAR,
    JOIN,
    PULL,
    Fault,
    Step,
    begin,
    each,
    is_found,
    pass_time,
    settle,
)

POLICY = "policies/groups.lua"


def delayed(ms: int) -> Step:
    """A job of the group "a"."""
    return "enqueue", {"jobs": [(4, ms, 0, 0, 1)], "immediate": False, "names": ["a"]}


def several(number: int) -> tuple[Step, ...]:
    """So many jobs of the group "a", and one consumer that takes one."""
    jobs, names = [(4, 0, 0, 0, 1)] * number, ["a"] * number
    return begin((1, 0)), ("enqueue", {"jobs": jobs, "immediate": False, "names": names})


FAULTS = [
    Fault(
        "two of a group have the turn",
        POLICY,
        "    if not turn then\n",
        "    if true then\n",
    ),
    Fault(
        "the turn goes to the one that came last",
        POLICY,
        "next_ = call('ZPOPMIN', key)",
        "next_ = call('ZPOPMAX', key)",
        (*several(3), PULL, settle("ack")),
    ),
    Fault(
        "who waits is not notified of the next of a group",
        "settle.lua",
        "ready = ready + (queue.opened or 0)",
        "",
        (begin((1, 0), (1, 0)), delayed(0), HEAR, delayed(0), settle("ack")),
    ),
    Fault(
        "a group that is busy has its next job delivered directly",
        POLICY,
        "return group and redis.call('HEXISTS', base .. 'groups', group) == 1 or nil",
        "return nil",
        (begin((1, 0), (1, 0)), delayed(0), delayed(0)),
    ),
    Fault(
        "a job that was delivered directly has no turn",
        POLICY,
        "if group then redis.call('HSET', base .. 'groups', group, job.id) end",
        "",
        (begin((1, 0)), delayed(0)),
    ),
    Fault(
        "a cancelled job keeps its turn",
        "cancel.lua",
        "--- @each pass(base, queue, { job })",
        "",
        (begin((0, 0)), delayed(0), ("cancel", {"pick": 0, "held": False})),
    ),
    Fault(
        "a dead letter keeps its turn",
        "include/finish/unfinished.lua",
        "    batch.gone[#batch.gone + 1] = job\n    --- @end\n    if verb",
        "    --- @end\n    if verb",
        found=(
            begin((2, 0), ready=3, later=True),
            ("obey", {"pick": 9}),
            (
                "enqueue",
                {
                    "immediate": True,
                    "jobs": [(4, 0, 0, 0, 5), (4, 800, 60, 0, 5), (4, 800, 0, -1, 9)],
                    "names": ["a", "a", "c", "b"],
                },
            ),
            (
                "join",
                {"lease": 6000, "mode": "acquire", "priority": -1, "slots": 1, "window": (3, 0)},
            ),
            ("obey", {"pick": 11}),
            (
                "commit",
                {
                    "pick": 3,
                    "foreign": False,
                    "jobs": [(4, 0, 60, ""), (4, 0, 0, "")],
                    "outcomes": [(4, "done"), (11, "reject"), (2, "ack")],
                },
            ),
        ),
    ),
    Fault(
        "a retry at the tail does not let its group pass",
        "include/finish/moved.lua",
        "for _, job in ipairs(moved) do gone[#gone + 1] = job end",
        "",
        (*several(2), PULL, settle("retry", "tail")),
    ),
    Fault(
        "the lists go before the heads of groups",
        "include/pull/merge.lua",
        "if place then take_heads(",
        "if false then take_heads(",
    ),
    Fault(
        "nobody knows of the jobs in ready heads",
        "include/order/waiting.lua",
        "for _, key in ipairs(heads) do total = total + redis.call('ZCARD', key) end",
        "",
        (begin((0, 0)), delayed(0), JOIN),
    ),
    Fault(
        "a purge forgets whom it lets pass",
        "include/finish/end.lua",
        "--- @each pass(base, queue, gone)",
        "",
        found=(
            (
                "begin",
                {
                    "consumers": [(1, (1, 150)), (0, (10, 300)), (0, (10, 150))],
                    "first": True,
                    "later": False,
                    "ready": 3,
                },
            ),
            (
                "enqueue",
                {"immediate": False, "jobs": [(4, 0, 0, 2, 10)], "names": ["b", "c", "", ""]},
            ),
            ("take_out", {"chosen": [3, 8, 2], "how": "expire"}),
        ),
    ),
    Fault(
        "a group that does not wait stays known",
        POLICY,
        "if redis.call('EXISTS', keys[i]) == 0 then redis",
        "if false then redis",
    ),
    Fault(
        "of two that are due together the wrong one has the turn",
        POLICY,
        "if not sorted then table.sort(mine, groups_by_position) end",
        "",
        (begin((1, 0)), delayed(3000), delayed(800), pass_time(4000), PULL),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["groups"])])
