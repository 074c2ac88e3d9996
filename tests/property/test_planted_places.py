"""Tests of the test: faults planted in what people do with jobs that wait are found."""

import redis

from tests.property.planted import Fault, Step, begin, each, enqueue, is_found, pass_time


def reorder(*chosen: int, level: int | None = None) -> Step:
    return "reorder", {"chosen": list(chosen), "level": level}


FAULTS = [
    Fault(
        "a job that leaves the middle of its list stays there",
        "include/order/replace.lua",
        "  redis.call('LSET', key, index, stand_in)\n",
        "",
        (begin(ready=3), reorder(1, level=9)),
    ),
    Fault(
        "a job that leaves the middle of its list is marked as ended",
        "include/order/replace.lua",
        "redis.call('HSET', base .. 'jobs', stand_in,",
        "redis.call('HSET', base .. 'jobs', job.id,",
        (begin(ready=3), reorder(1)),
    ),
    Fault(
        "what stands in the place of a job that was moved is not counted",
        "reorder.lua",
        "if marks > 0 then count_up(meta, 'marked', marks) end",
        "",
        (begin(ready=3), reorder(1, level=0)),
    ),
    Fault(
        "a job comes to the front behind those that are due",
        "include/order/front.lua",
        "if other and other - 1 < due then",
        "if false then",
        (begin(ready=2), enqueue(delay=800), pass_time(900), reorder(0)),
    ),
    Fault(
        "of several that come to the front the last one is the first",
        "reorder.lua",
        "if not priority then from, till, step = count, 1, -1 end",
        "",
        (begin(ready=3), reorder(1, 2)),
    ),
    Fault(
        "a scheduled job of another priority is due in its old place",
        "reorder.lua",
        "      redis.call('ZREM', base .. 'scheduled', member)\n",
        "",
        (begin(), enqueue(delay=800), reorder(0, level=9)),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client)
