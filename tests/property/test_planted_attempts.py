"""Tests of the test: faults planted in attempts, crashes and leases are found."""

from pathlib import Path

import redis

from tests.property.planted import (
    HEAR,
    JOIN,
    LEASE_OVER,
    OBEY,
    PULL,
    RELEASE_SECOND,
    TWO_HELD,
    Fault,
    begin,
    crash,
    each,
    enqueue,
    is_found,
    note_running,
    pass_time,
    renew,
    settle,
)

FAULTS = [
    Fault(
        "a released job goes to the tail",
        "include/finish/unfinished.lua",
        "reinsert_jobs(base, queue, batch.returned)",
        "for _, job in ipairs(batch.returned) do"
        " redis.call('RPUSH', base .. 'ready:' .. job.level, job.id) end",
        found=(
            begin((2, 300), (3, 0), ready=4, first=False),
            ("set_ring", {"ring": 2}),
            ("enqueue", {"immediate": False, "jobs": [(9, 0, 0, -2, 3), (0, 0, 200, 1, 9)]}),
            ("pull", {"pick": 8, "recall": True, "window": (3, 150)}),
            (
                "commit",
                {
                    "pick": 5,
                    "foreign": False,
                    "jobs": [(4, 0, 0, "c"), (0, 0, 0, "b")],
                    "outcomes": [(8, "done"), (5, "retry"), (6, "retry")],
                },
            ),
        ),
    ),
    Fault(
        "what was noted of an earlier delivery is charged",
        "include/finish/suspects.lua",
        "if deliveries and tonumber(deliveries) == job.deliveries then",
        "if deliveries then",
        (
            begin((3, 0)),
            enqueue(),
            HEAR,
            enqueue(),
            OBEY,
            note_running(1),
            RELEASE_SECOND,
            PULL,
            pass_time(7000),
            renew(),
        ),
    ),
    Fault(
        "what the end of a lease cost is not taken back where its consumer lives",
        "renew.lua",
        "lapsed_forgive(base, name)",
        "",
        (begin((3, 0)), enqueue(), HEAR, note_running(0), LEASE_OVER, renew(), renew(0)),
    ),
    Fault(
        "a lease that ended does not go on although nobody took the jobs",
        "renew.lua",
        " and redis.call('HEXISTS', base .. 'consumer:' .. name, 'term') == 0 then",
        " then",
        (begin((3, 0)), enqueue(), HEAR, LEASE_OVER, renew(0)),
    ),
    Fault(
        "a charge is taken back from a job that lives again",
        "include/finish/lapsed.lua",
        "if said and said.position == job.position then",
        "if said then",
        (
            begin((3, 0)),
            enqueue(),
            HEAR,
            note_running(0),
            LEASE_OVER,
            renew(),
            JOIN,
            PULL,
            settle("reject"),
            ("dead_letters", {"chosen": [0], "live": True}),
            PULL,
            crash(0),
            renew(0),
        ),
    ),
    Fault(
        "the end of a lease suspects what nobody has read",
        "include/finish/suspects.lua",
        "if not unread[job.id] then",
        "if true then",
        (begin((3, 0)), enqueue(), LEASE_OVER, renew()),
    ),
    Fault(
        "the end of a lease charges the oldest beside what was noted",
        "include/finish/suspects.lua",
        "if left == 0 and before + count == 0 then",
        "if left == 0 then",
        (
            begin((3, 0)),
            enqueue(),
            HEAR,
            enqueue(),
            OBEY,
            note_running(1),
            pass_time(7000),
            renew(),
        ),
    ),
    Fault(
        "who is suspected for the first time is charged",
        "include/finish/suspects.lua",
        "if not suspects_known(base, job) then",
        "if false then",
        (*TWO_HELD, LEASE_OVER, renew()),
    ),
    Fault(
        "a suspicion is forgotten",
        "include/finish/suspects.lua",
        "if not suspects_known(base, job) then",
        "if true then",
        (*TWO_HELD, LEASE_OVER, renew(), JOIN, PULL, LEASE_OVER, renew()),
    ),
    Fault(
        "a suspicion goes along to another place",
        "include/finish/suspects.lua",
        " and error_.position == job.position",
        "",
        (
            *(begin((3, 0)), enqueue(), HEAR, LEASE_OVER, renew()),
            *(JOIN, PULL, settle("retry", "tail"), PULL, LEASE_OVER, renew()),
        ),
    ),
    Fault(
        "a job that crashes again comes back at once",
        "include/finish/attempt.lua",
        "if job.crashes < 2 then return 0 end",
        "if job.crashes < 9 then return 0 end",
        (begin((3, 0)), enqueue(), HEAR, crash(0), JOIN, PULL, crash(0)),
    ),
    Fault(
        "a job that crashed again loses its place",
        "include/finish/unfinished.lua",
        "if keeps or place == 'tail' then",
        "if place == 'park' or place == 'tail' then",
        (begin((3, 0)), enqueue(), HEAR, crash(0), JOIN, PULL, crash(0)),
    ),
    Fault(
        "jobs that crashed together come back together",
        "include/finish/attempt.lua",
        "* turn, CRASH_DELAY_MOST",
        ", CRASH_DELAY_MOST",
        (*TWO_HELD, crash(0, 1), JOIN, PULL, crash(0, 1)),
    ),
    Fault(
        "crashes have no limit",
        "include/finish/attempt.lua",
        "return most > 0 and job.crashes + 1 >= most",
        "return false",
        (begin((3, 0)), enqueue(limit=-1), HEAR, crash(0)),
    ),
    Fault(
        "counted jobs are counted twice",
        "include/finish/unfinished.lua",
        "batch.released = batch.released + 1",
        "batch.released = batch.released + 2",
        found=(
            (
                "begin",
                {
                    "consumers": [(0, (3, 150)), (0, (3, 0)), (0, (0, 0))],
                    "everyday": True,
                    "first": True,
                    "later": False,
                    "ready": 1,
                },
            ),
            ("obey", {"pick": 8}),
            ("cancel", {"pick": 16, "held": True}),
            ("enqueue", {"immediate": False, "jobs": [(4, 0, 200, -2, 2), (4, 0, 60, 0, 5)]}),
            ("leave", {"pick": 3, "charged": [9, 10, 7, 2], "dies": True}),
        ),
    ),
    Fault(
        "nobody watches for a job that crashed again",
        "include/finish/unfinished.lua",
        "schedule_add_watch(base, queue.now, batch.soonest, queue.timer)",
        "",
        (begin((1, 0), (1, 0)), enqueue(), HEAR, crash(0), OBEY, JOIN, crash(0)),
    ),
    Fault(
        "a retry at the tail is no arrival",
        "include/finish/unfinished.lua",
        "    batch.ready = batch.ready + 1\n",
        "",
        (begin((1, 0), (1, 0)), enqueue(), HEAR, settle("retry", "tail")),
    ),
    Fault(
        "a release is charged",
        "include/finish/unfinished.lua",
        "if last or counts then",
        "if last or counts or verb == 'release' then",
        found=(
            begin((3, 150), (3, 0), (0, 0), ready=1),
            (
                "join",
                {"lease": 6000, "mode": "acquire", "priority": 0, "slots": 2, "window": (3, 300)},
            ),
            OBEY,
            ("interest", {"pick": 6, "window": (2, 300)}),
            ("enqueue", {"immediate": True, "jobs": [(4, 0, 60, -2, 7)]}),
            ("leave", {"pick": 10, "charged": [], "dies": False}),
        ),
    ),
    Fault(
        "the end of a lease suspects every job",
        "include/finish/suspects.lua",
        "        break\n",
        "",
        (begin((3, 0), ready=2), OBEY, LEASE_OVER, renew()),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis, tmp_path: Path) -> None:
    is_found(fault, client, tmp_path)
