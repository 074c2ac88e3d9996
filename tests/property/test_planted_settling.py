"""Tests of the test: faults planted in what a settle does are found."""

import redis

from tests.property.planted import (
    ACK_AND_PULL,
    HEAR,
    NEXT,
    OBEY,
    PULL,
    RELEASE_SECOND,
    Fault,
    begin,
    each,
    enqueue,
    is_found,
    settle,
)

FAULTS = [
    Fault(
        "what leaves the middle of the held jobs takes its neighbours along",
        "include/held/remove.lua",
        "if not gone[some[i]] then rest[#rest + 1] = some[i] end",
        "",
        (begin((3, 0), ready=3), PULL, RELEASE_SECOND),
    ),
    Fault(
        "a settle in an old term counts",
        "include/consumer/open.lua",
        "if row[1] ~= term then",
        "if false then",
        found=(
            begin((3, 150), (3, 0), (0, 0), ready=1),
            OBEY,
            ("intrude", {"pick": 10, "fault": "term", "verb": 4}),
        ),
    ),
    Fault(
        "no consumer is notified of a job that was released",
        "settle.lua",
        "if ready > 0 and not queue.paused then",
        "if false then",
        found=(
            begin((3, 0), (3, 150), (3, 300), ready=4, first=False),
            ("pull", {"pick": 1, "recall": False, "window": (3, 300)}),
            ("obey", {"pick": 9}),
            ("settle_one", {"pick": 4, "outcome": "release", "place": 0, "return_to": "old"}),
        ),
    ),
    Fault(
        "an outcome of an earlier delivery counts",
        "include/settle/unfinished.lua",
        "fate.job.deliveries ~= fate.before then",
        "false then",
        (begin((1, 0)), enqueue(), HEAR, settle("retry before")),
    ),
    Fault(
        "a consumer's other jobs are lost when one of them is settled",
        "include/settle/fast_path.lua",
        "if head[2] then redis.call('LPUSH', held, head[2]) end",
        "",
        (begin((3, 0), ready=3), PULL, settle("ack"), ACK_AND_PULL),
    ),
    Fault(
        "a lone settle takes what was cancelled",
        "include/settle/fast_path.lua",
        "if value and string.byte(value) ~= 33 then",
        "if value then",
        (
            *(begin((1, 0)), enqueue(), HEAR, NEXT),
            *(enqueue(), HEAR, enqueue(), enqueue()),
            ("cancel", {"pick": 1, "held": False}),
            NEXT,
        ),
    ),
    Fault(
        "a lone settle in an old term counts",
        "include/settle/fast_path.lua",
        "mine[1] ~= term or ",
        "",
        (
            *(begin((1, 0)), enqueue(), HEAR, NEXT, enqueue(), HEAR),
            ("intrude", {"pick": 0, "verb": 2, "fault": "term"}),
        ),
    ),
    Fault(
        "errors outlive a job that is settled alone",
        "include/settle/fast_path.lua",
        "if failed == 1 then redis.call('HDEL', base .. 'errors', id) end",
        "",
        (begin((1, 0), ready=2), PULL, NEXT, settle("retry"), PULL, NEXT),
    ),
    Fault(
        "who settles alone waits though there is work",
        "include/settle/fast_path.lua",
        "empty = redis.call('EXISTS', ready, base .. 'scheduled', base .. 'byte_waiters') == 0",
        "empty = true",
        (begin((3, 0)), enqueue(), HEAR, NEXT, enqueue(), HEAR, enqueue(), NEXT),
    ),
    Fault(
        "a refused settle has written already",
        "settle.lua",
        "me, failure = consumer_open(base, consumer, term, mine)",
        "redis.call('HINCRBY', meta, 'settles', 1)\n"
        "me, failure = consumer_open(base, consumer, term, mine)",
        found=(
            begin((2, 300), (3, 0), ready=4, first=False),
            ("intrude", {"pick": 3, "fault": "args", "verb": 11}),
        ),
    ),
    Fault(
        "bytes of a settle that was refused are freed",
        "include/settle/out_of_order.lua",
        "if me.bytes > 0 and #rows > 0 then",
        "if false then",
        (
            begin((10, 300)),
            enqueue(60),
            HEAR,
            PULL,
            enqueue(60),
            HEAR,
            ("cancel", {"pick": 0, "held": True}),
            settle("ack"),
        ),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client)
