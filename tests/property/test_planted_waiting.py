"""Tests of the test: faults planted in who waits, where jobs wait and what is pulled are found."""

import redis

from tests.property.planted import (
    HEAR,
    OBEY,
    PAUSE,
    PULL,
    RESUME,
    Fault,
    begin,
    each,
    enqueue,
    is_found,
    make_ready,
    pass_time,
    renew,
    retry_later,
    settle,
)

FAULTS = [
    Fault(
        "an arrival wakes all",
        "include/consumer/notify.lua",
        "if covered >= jobs then break end",
        "",
        (begin((2, 0), (1, 0)), PAUSE, enqueue(), enqueue(), RESUME),
    ),
    Fault(
        "lower levels come first",
        "include/order/levels.lua",
        "return a > b",
        "return a < b",
        found=(
            begin((2, 300), (3, 0), ready=4, first=False),
            ("set_ring", {"ring": 2}),
            ("enqueue", {"immediate": False, "jobs": [(9, 0, 0, -2, 3), (0, 0, 200, 1, 9)]}),
        ),
    ),
    Fault(
        "one job more than the window is handed out",
        "include/pull/pull.lua",
        "local free = consumer.want - held",
        "local free = consumer.want - held + 1",
        found=(
            begin((0, 0), ready=2, later=True),
            ("pull", {"pick": 11, "recall": False, "window": None}),
        ),
    ),
    Fault(
        "bytes are not looked at",
        "include/pull/dequeue.lua",
        "if room and bytes + size > room",
        "if false and bytes + size > room",
        (begin((3, 150)), PAUSE, enqueue(60), enqueue(60), RESUME, OBEY),
    ),
    Fault(
        "a consumer that waits for bytes is forgotten",
        "include/consumer/wait_for_bytes.lua",
        "  local waiting = redis.call('HMGET', base .. 'byte_waiters', unpack(ids))",
        "  local waiting = {}",
        (
            *(begin((3, 150)), PAUSE, enqueue(60), enqueue(60), RESUME, OBEY),
            ("cancel", {"pick": 1, "held": False}),
        ),
    ),
    Fault(
        "a paused queue hands out",
        "include/pull/pull.lua",
        "  if queue.paused then\n    pull_leave",
        "  if false then\n    pull_leave",
        (begin((1, 0)), PAUSE, enqueue(), PULL),
    ),
    Fault(
        "work is not passed on",
        "include/consumer/notify_next.lua",
        "  if queue.paused or queue.quiet then return end\n  if redis",
        "  if true then return end\n  if redis",
        found=(
            begin((3, 0), (3, 150), (3, 300), ready=4, first=False),
            ("obey", {"pick": 11}),
        ),
    ),
    Fault(
        "a job that is due earlier tells nobody",
        "include/schedule/add.lua",
        "if due > ADDED[soonest] then",
        "if due >= ADDED[soonest] then",
        found=(begin((3, 0), later=True, first=False),),
    ),
    Fault(
        "due jobs come in reverse",
        "include/schedule/promote.lua",
        "      redis.call('RPUSH', key, unpack(ids))\n",
        "      redis.call('LPUSH', key, unpack(ids))\n",
        (begin((1, 0)), enqueue(delay=800), enqueue(delay=800), pass_time(900), PULL),
    ),
    Fault(
        "a job made ready by hand stands where it was put",
        "include/order/append_sorted.lua",
        "if not before or not first or sort_key_before(before, first) then",
        "if true then",
        (begin(), enqueue(delay=800), enqueue(delay=800), make_ready(1), make_ready(0)),
    ),
    Fault(
        "a due job that comes back stands behind those that are due later",
        "include/order/sort_key.lua",
        "one.due < other.due or one.due == other.due and one.position",
        "one.position",
        (
            begin((1, 0)),
            PAUSE,
            enqueue(delay=3000),
            enqueue(delay=800),
            pass_time(4000),
            RESUME,
            OBEY,
            settle("release"),
        ),
    ),
    Fault(
        "a job that goes to the tail when due stays among the due ones",
        "include/schedule/promote_special.lua",
        "redis.call('HINCRBY', meta, 'seq', 1), 0",
        "redis.call('HINCRBY', meta, 'seq', 1), job.due",
        (begin((1, 0)), enqueue(), HEAR, retry_later("tail"), pass_time(900), PULL),
    ),
    Fault(
        "a consumer that does not answer keeps its wake-up",
        "include/consumer/maintenance.lua",
        "  maintenance_notified(base, queue)\n",
        "",
        (
            begin((1, 0), (1, 0)),
            PAUSE,
            enqueue(),
            RESUME,
            pass_time(4000),
            renew(0, 1),
            pass_time(4000),
            renew(0, 1),
        ),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client)
