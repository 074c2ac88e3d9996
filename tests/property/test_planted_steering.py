"""Tests of the test: faults planted in what people do to jobs and queues are found."""

import redis

from tests.property.planted import (
    HEAR,
    PAUSE,
    PULL,
    RESUME,
    Fault,
    begin,
    crash,
    each,
    enqueue,
    is_found,
    make_ready,
    settle,
)

FAULTS = [
    Fault(
        "jobs made ready by hand lose their due order",
        "promote.lua",
        "if i < count and job.was_due < chosen[i + 1].was_due then due = due - 1 end",
        "",
        (begin((1, 0)), enqueue(delay=3000), enqueue(delay=800), make_ready(0, 1)),
    ),
    Fault(
        "a dead letter that lives again has crashed before",
        "requeue.lua",
        "job.due, job.attempts, job.crashes = 0, 0, 0",
        "job.due, job.attempts = 0, 0",
        (
            begin((3, 0)),
            enqueue(limit=-1),
            HEAR,
            crash(0),
            ("dead_letters", {"chosen": [0], "live": True}),
        ),
    ),
    Fault(
        "after a pause nobody watches the schedule",
        "include/queue/resume.lua",
        "\n  consumer_wake_timer(base, queue.now)\n",
        "\n",
        (begin((2, 0)), enqueue(delay=900), PAUSE, HEAR, PULL, RESUME),
    ),
    Fault(
        "a cancelled job stays held",
        "cancel.lua",
        "    redis.call('LREM', base .. 'held:' .. holder, 1, id)\n",
        "",
        found=(
            begin((3, 150), (3, 0), (0, 0), ready=1),
            ("obey", {"pick": 8}),
            ("cancel", {"pick": 16, "held": True}),
        ),
    ),
    Fault(
        "a cancelled job leaves no record",
        "cancel.lua",
        "records_write(base, queue, {",
        "records_write(base, queue, {}, {",
    ),
    Fault(
        "no consumer is notified that what it holds is purged",
        "purge_held.lua",
        "redis.call('RPUSH', base .. 'wake:' .. consumer, unpack(ends))",
        "",
        (begin((2, 0)), enqueue(), HEAR, ("purge_held", {"pick": 0, "chosen": [0]})),
    ),
    Fault(
        "the bytes of what is purged stay on the consumer's account",
        "purge_held.lua",
        "'held_bytes', -bytes)",
        "'held_bytes', 0)",
        (
            begin((3, 300)),
            enqueue(),
            enqueue(),
            HEAR,
            PULL,
            ("purge_held", {"pick": 0, "chosen": [0]}),
        ),
    ),
    Fault(
        "no consumer is notified of a dead letter that lives again",
        "requeue.lua",
        "if not queue.paused and ready > 0 then consumer_notify",
        "if false then consumer_notify",
        (
            begin((2, 0)),
            enqueue(),
            HEAR,
            settle("reject"),
            PULL,
            ("dead_letters", {"chosen": [0], "live": True}),
        ),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client)
