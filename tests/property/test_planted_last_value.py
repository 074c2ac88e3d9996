"""Tests of the test: faults planted in the policy of last values are found."""

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
    retry_later,
    settle,
)

POLICY = "policies/last_value.lua"
SHELF = "policies/last_value/shelf.lua"


def put(*keys: str, delay: int = 0) -> Step:
    """Jobs of these keys, enqueued together."""
    jobs = [(4, delay, 0, 0, 1)] * len(keys)
    return "enqueue", {"jobs": jobs, "immediate": False, "names": keys}


FAULTS = [
    Fault(
        "nobody is displaced",
        POLICY,
        "if before and before ~= job.id then",
        "if false then",
        (begin((0, 0)), put("a"), put("a")),
    ),
    Fault(
        "one that waits to be tried again is not displaced",
        POLICY,
        "{ 'heads', 'scheduled' }",
        "{ 'heads' }",
        (begin((1, 0)), put("a"), HEAR, retry_later("old"), put("a")),
    ),
    Fault(
        "a retry that is displaced by a value which becomes due with it does not end",
        POLICY,
        "      plan.victims[#plan.victims + 1] = { id = job.id }\n    end\n",
        "    end\n",
        (
            begin((1, 0)),
            put("a"),
            HEAR,
            retry_later("old"),
            put("a", delay=700),
            pass_time(900),
            PULL,
        ),
    ),
    Fault(
        "of a batch all stand in line",
        SHELF,
        "if plan.gone[job.id] then",
        "if false then",
        (begin((0, 0)), put("a", "b", "a")),
    ),
    Fault(
        "consumers are notified of jobs of a batch that are displaced",
        SHELF,
        "queue.kept_back = (queue.kept_back or 0) + 1",
        "queue.kept_back = (queue.kept_back or 0)",
        (begin((1, 0), (1, 0)), put("a", "a")),
    ),
    Fault(
        "what an enqueue displaces does not end",
        "include/enqueue/entry.lua",
        "    displaced_end(step.base, queue_open(step.base), step.displaced)\n",
        "",
        (begin((0, 0)), put("a"), put("a")),
    ),
    Fault(
        "an old value comes back",
        POLICY,
        "~= job.id and 'displaced' or nil",
        "== 0 and 'displaced' or nil",
        (begin((1, 0)), put("a"), HEAR, put("a"), settle("release")),
    ),
    Fault(
        "an old value comes back where the newer one has ended",
        POLICY,
        "return redis.call('HGET', base .. 'latest', key) ~= job.id",
        "return (redis.call('HGET', base .. 'latest', key) or job.id) ~= job.id",
        (
            begin((1, 0), (1, 0)),
            put("a"),
            put("a"),
            HEAR,
            HEAR,
            settle("ack", pick=1),
            settle("release"),
        ),
    ),
    Fault(
        "an old value that ends takes the note of the newer one along",
        POLICY,
        "if id == ids[i] then",
        "if id then",
        (begin((1, 0)), put("a"), HEAR, put("a"), settle("ack")),
    ),
    Fault(
        "of what is done the note stays",
        POLICY,
        "    if key then ids[#ids + 1], keys[#keys + 1] = gone[i], key end\n",
        "",
        (begin((1, 0)), put("a"), HEAR, settle("ack")),
    ),
    Fault(
        "of what is gone the note stays",
        POLICY,
        "    if key then ids[#ids + 1], keys[#keys + 1] = job.id, key end\n",
        "",
        (begin((1, 0)), put("a"), HEAR, settle("reject")),
    ),
    Fault(
        "a job that was delivered directly is not the latest",
        POLICY,
        "if key then redis.call(held and 'HSETNX' or 'HSET', base .. 'latest', key, job.id) end",
        "",
        (begin((1, 0)), put("a")),
    ),
    Fault(
        "one that is to come at the tail later is none of its key meanwhile",
        "include/finish/unfinished.lua",
        "      job.again = true\n",
        "",
        (begin((1, 0)), put("a"), HEAR, retry_later("tail")),
    ),
    Fault(
        "a cancelled job with a key leaves a mark",
        POLICY,
        "== 1 then return 'ready' end",
        "== 2 then return 'ready' end",
        (begin((0, 0)), put("a"), ("cancel", {"pick": 0, "held": False})),
    ),
    Fault(
        "what is displaced where it comes back leaves no record",
        "include/finish/unfinished.lua",
        "string.format('R%d:', queue.now)",
        "'D1:'",
        (begin((1, 0)), put("a"), HEAR, put("a"), settle("release")),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, kinds=[Kind.of(["last_value"])])
