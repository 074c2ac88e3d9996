"""Tests of the test: faults planted in what an enqueue does are found."""

import redis

from tests.property.planted import (
    HEAR,
    LEASE_OVER,
    NEXT,
    OBEY,
    PAUSE,
    PULL,
    RESUME,
    Fault,
    begin,
    each,
    enqueue,
    is_found,
    note_running,
    renew,
    settle,
)

FAULTS = [
    Fault(
        "an arrival wakes nobody",
        "include/enqueue/telling.lua",
        "if step.waiters[1] and step.ready > 0 and not step.taker then",
        "if false then",
    ),
    Fault(
        "a job delivered directly is held by no consumer",
        "include/deliver/assign.lua",
        "local count = redis.pcall('RPUSH', held, id)",
        "local count = 1",
        found=(
            begin((3, 150), (3, 0), (0, 0), ready=1),
            OBEY,
            ("pull", {"pick": 1, "recall": False, "window": None}),
            ("enqueue", {"immediate": True, "jobs": [(4, 0, 60, -2, 7)]}),
        ),
    ),
    Fault(
        "a job delivered directly goes past one that waits",
        "include/deliver/direct.lua",
        "if there > 0 then",
        "if false then",
        (begin((1, 0), (1, 0)), PAUSE, enqueue(), RESUME, enqueue()),
    ),
    Fault(
        "a lone job goes past one that waits",
        "include/enqueue/fast_path.lua",
        "or redis.call('EXISTS', base .. 'ready:4', base .. 'due:4', base .. 'scheduled') > 0",
        "",
        (begin((1, 0), (1, 0)), PAUSE, enqueue(), RESUME, enqueue()),
    ),
    Fault(
        "a lone job is delivered and its bytes are not counted",
        "include/enqueue/fast_path.lua",
        "window[2] ~= '0' and string.format('%d', #value), id, value)",
        "nil, id, value)",
        (begin((3, 100)), enqueue(), HEAR, NEXT, enqueue(60), HEAR, enqueue(60), PULL),
    ),
    Fault(
        "a lone job is delivered and the bytes held before are forgotten",
        "include/enqueue/fast_path.lua",
        "or window[2] ~= '0' and (window[3] or '0') ~= '0' then return nil",
        "then return nil",
        (begin((3, 500)), enqueue(), HEAR, PULL, enqueue()),
    ),
    Fault(
        "a lone job is delivered twice",
        "include/enqueue/fast_path.lua",
        "HEXISTS', base .. 'ended', id)",
        "HEXISTS', base .. 'ended', '')",
        (begin((1, 0)), enqueue(), HEAR, settle("ack"), enqueue(known=True)),
    ),
    Fault(
        "an id that has ended is accepted again",
        "include/enqueue/known.lua",
        "if live[i] or ended[i] or older[i]",
        "if live[i] or older[i]",
        (begin((1, 0)), enqueue(), HEAR, settle("ack"), PAUSE, enqueue(limit=1, known=True)),
    ),
    Fault(
        "an id is accepted again a little too early",
        "include/result/records.lua",
        "  queue.since = string.format('%d', queue.now)\n"
        "  redis.call('HSET', base .. 'meta', 'ended_since', queue.since)",
        "  redis.call('HSET', base .. 'meta', 'ended_since', string.format('%d', queue.now))",
        (
            begin((1, 0), (1, 0)),
            enqueue(),
            HEAR,
            settle("ack"),
            PULL,
            enqueue(limit=1),
            HEAR,
            enqueue(limit=1),
            HEAR,
            note_running(0),
            note_running(0, pick=1),
            LEASE_OVER,
            renew(),
        ),
    ),
    Fault(
        "an immediate job that is refused is stored",
        "include/enqueue/taker.lua",
        "if step.how == '1' and not taker then",
        "redis.call('HSET', base .. 'jobs', step.ids[1], step.arguments[step.first + 1])\n"
        "if step.how == '1' and not taker then",
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client)
