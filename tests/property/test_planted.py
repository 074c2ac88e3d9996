"""Tests of the test: each of these faults, planted in the Lua sources, is found.

Most are found by the machine's search. Those that only a rare course of events shows have that
course written down: the steps of the machine, whose checks must object, and must not without the
fault.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from rqueue.protocol.scripts import Scripts
from tests.property.machine import Machine
from tests.property.sources import changed, frozen

SEARCH = settings(
    max_examples=300,
    stateful_step_count=50,
    derandomize=True,  # each run searches the same way
    database=None,
    phases=[Phase.generate],
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    right: str
    wrong: str
    steps: tuple[tuple[str, dict[str, Any]], ...] = ()


def begin(*windows: tuple[int, int], ready: int = 0) -> tuple[str, dict[str, Any]]:
    """Consumers with these windows, and jobs that were there before them."""
    consumers = [(0, window) for window in windows]
    return "begin", {"consumers": consumers, "ready": ready, "later": False, "first": True}


def enqueue(
    padding: int = 0, limit: int = 0, known: bool = False, delay: int = 0
) -> tuple[str, dict[str, Any]]:
    return "enqueue", {"jobs": [(4, delay, padding, limit, 0 if known else 1)], "immediate": False}


def retry_later(return_to: str) -> tuple[str, dict[str, Any]]:
    outcomes = [(0, "retry", 800, return_to, True)]
    return "settle", {
        "pick": 0,
        "outcomes": outcomes,
        "others": 0,
        "pull": False,
        "window": None,
    }


def make_ready(*picks: int) -> tuple[str, dict[str, Any]]:
    return "promote", {"chosen": list(picks), "parked": False}


def settle(outcome: str, return_to: str = "old", pick: int = 0) -> tuple[str, dict[str, Any]]:
    return "settle_one", {"pick": pick, "place": 0, "outcome": outcome, "return_to": return_to}


def pass_time(ms: int) -> tuple[str, dict[str, Any]]:
    return "pass_time", {"ms": ms}


def renew(*names: int) -> tuple[str, dict[str, Any]]:
    return "renew", {"names": list(names)}


def note_running(*chosen: int, pick: int = 0) -> tuple[str, dict[str, Any]]:
    return "note_running", {"pick": pick, "chosen": list(chosen), "stranger": False}


def crash(*charged: int) -> tuple[str, dict[str, Any]]:
    """The process of the first consumer dies while it runs these of its jobs."""
    return "leave", {"pick": 0, "dies": True, "charged": list(charged)}


JOIN = (
    "join",
    {"mode": "acquire", "priority": 0, "window": (3, 0), "slots": 1, "lease": 6000},
)
RELEASE_SECOND = (
    "settle_one",
    {"pick": 0, "place": 1, "outcome": "release", "return_to": "old"},
)
HEAR = ("hear", {"pick": 0})
PULL = ("pull", {"pick": 0, "window": None, "recall": False})
OBEY = ("obey", {"pick": 0})
ACK_AND_PULL = (
    "settle",
    {
        "pick": 0,
        "outcomes": [(0, "ack", 0, "old", True)],
        "others": 0,
        "pull": True,
        "window": None,
    },
)
NEXT = ("next_one", {"pick": 0, "outcome": "ack"})
TWO_HELD = (begin((3, 0)), enqueue(), HEAR, enqueue(), OBEY)
LEASE_OVER = pass_time(7000)
PAUSE = RESUME = ("pause_or_resume", {"really": True})


FAULTS = [
    Fault(
        "jobs made ready by hand lose their due order",
        "promote.lua",
        "if i < count and job.was_due < chosen[i + 1].was_due then due = due - 1 end",
        "",
        (begin((1, 0)), enqueue(delay=3000), enqueue(delay=800), make_ready(0, 1)),
    ),
    Fault(
        "a released job goes to the tail",
        "include/finish/unfinished.lua",
        "reinsert_jobs(base, queue, batch.returned)",
        "for _, job in ipairs(batch.returned) do"
        " redis.call('RPUSH', base .. 'ready:' .. job.level, job.id) end",
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
    ),
    Fault(
        "nobody watches for a job that crashed again",
        "include/finish/unfinished.lua",
        "schedule_add_watch(base, queue.now, batch.soonest, queue.timer)",
        "",
        (begin((1, 0), (1, 0)), enqueue(), HEAR, crash(0), OBEY, JOIN, crash(0)),
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
        "what leaves the middle of the held jobs takes its neighbours along",
        "include/held/remove.lua",
        "if not gone[some[i]] then rest[#rest + 1] = some[i] end",
        "",
    ),
    Fault(
        "a settle in an old term counts",
        "include/consumer/open.lua",
        "if row[1] ~= term then",
        "if false then",
    ),
    Fault(
        "no consumer is notified of a job that was released",
        "settle.lua",
        "if ready > 0 and not queue.paused then",
        "if false then",
    ),
    Fault(
        "an outcome of an earlier delivery counts",
        "include/settle/unfinished.lua",
        "fate.job.deliveries ~= fate.before then",
        "false then",
        (begin((1, 0)), enqueue(), HEAR, settle("retry before")),
    ),
    Fault(
        "a retry at the tail is no arrival",
        "include/finish/unfinished.lua",
        "    batch.ready = batch.ready + 1\n",
        "",
        (begin((1, 0), (1, 0)), enqueue(), HEAR, settle("retry", "tail")),
    ),
    Fault(
        "an arrival wakes all",
        "include/consumer/notify.lua",
        "if covered >= jobs then break end",
        "",
    ),
    Fault(
        "an arrival wakes nobody",
        "enqueue.lua",
        "if waiters[1] and ready > 0 and not taker then",
        "if false then",
    ),
    Fault(
        "a job delivered directly is held by no consumer",
        "include/deliver/assign.lua",
        "local count = redis.pcall('RPUSH', held, id)",
        "local count = 1",
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
        "its_term ~= term or ",
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
        "lower levels come first",
        "include/order/levels.lua",
        "return a > b",
        "return a < b",
    ),
    Fault(
        "an id that has ended is accepted again",
        "enqueue.lua",
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
        "a release is charged",
        "include/finish/unfinished.lua",
        "if last or counts then",
        "if last or counts or verb == 'release' then",
    ),
    Fault(
        "a refused settle has written already",
        "settle.lua",
        "me, failure = consumer_open(base, consumer, term, mine)",
        "redis.call('HINCRBY', meta, 'settles', 1)\n"
        "me, failure = consumer_open(base, consumer, term, mine)",
    ),
    Fault(
        "an immediate job that is refused is stored",
        "enqueue.lua",
        "if how == '1' and not taker then",
        "redis.call('HSET', base .. 'jobs', ids[1], ARGV[FIRST + 1])\n"
        "if how == '1' and not taker then",
    ),
    Fault(
        "one job more than the window is handed out",
        "include/pull/pull.lua",
        "local free = consumer.want - held",
        "local free = consumer.want - held + 1",
    ),
    Fault(
        "bytes are not looked at",
        "include/pull/dequeue.lua",
        "if room and bytes + size > room",
        "if false and bytes + size > room",
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
    Fault(
        "a consumer that waits for bytes is forgotten",
        "include/consumer/wait_for_bytes.lua",
        "  local waiting = redis.call('HMGET', base .. 'byte_waiters', unpack(ids))",
        "  local waiting = {}",
    ),
    Fault(
        "a paused queue hands out",
        "include/pull/pull.lua",
        "  if queue.paused then\n    pull_leave",
        "  if false then\n    pull_leave",
    ),
    Fault(
        "work is not passed on",
        "include/consumer/notify_next.lua",
        "  if queue.paused or queue.quiet then return end\n  if redis",
        "  if true then return end\n  if redis",
    ),
    Fault(
        "a job that is due earlier tells nobody",
        "include/schedule/add.lua",
        "if due > ADDED[soonest] then",
        "if due >= ADDED[soonest] then",
    ),
    Fault(
        "after a pause nobody watches the schedule",
        "resume.lua",
        "\nconsumer_wake_timer(base, queue.now)\n",
        "\n",
    ),
    Fault(
        "due jobs come in reverse",
        "include/schedule/promote.lua",
        "      redis.call('RPUSH', key, unpack(ids))\n",
        "      redis.call('LPUSH', key, unpack(ids))\n",
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
    Fault(
        "the end of a lease suspects every job",
        "include/finish/suspects.lua",
        "        break\n",
        "",
        (begin((3, 0), ready=2), OBEY, LEASE_OVER, renew()),
    ),
    Fault(
        "a cancelled job stays held",
        "cancel.lua",
        "    redis.call('LREM', base .. 'held:' .. holder, 1, id)\n",
        "",
    ),
    Fault(
        "a cancelled job leaves no record",
        "cancel.lua",
        "records_write(base, queue, {",
        "records_write(base, queue, {}, {",
    ),
    Fault(
        "nobody is told that what it holds is purged",
        "purge_held.lua",
        "redis.call('RPUSH', base .. 'wake:' .. consumer, unpack(told))",
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
        "nobody is told of a dead letter that lives again",
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


def make(client: redis.Redis, scripts: Scripts) -> type[Machine]:
    return type("Machine", (Machine,), {"client": client, "lua": scripts})


def play(machine: Machine, fault: Fault) -> None:
    """Take the steps of this fault, and look after each."""
    try:
        for step, arguments in fault.steps:
            getattr(machine, step)(**arguments)
            machine.holds()
    finally:
        machine.teardown()


def by_name(fault: Fault) -> str:
    return fault.name.replace(" ", "_")


SEARCHED = [fault for fault in FAULTS if not fault.steps]
PLAYED = [fault for fault in FAULTS if fault.steps]


@pytest.mark.parametrize("fault", SEARCHED, ids=by_name)
def test_the_search_finds(fault: Fault, client: redis.Redis, tmp_path: Path) -> None:
    scripts = frozen(tmp_path)
    changed(tmp_path, fault.file, fault.right, fault.wrong)
    with pytest.raises((AssertionError, redis.ResponseError)):
        run_state_machine_as_test(make(client, scripts), settings=SEARCH)


@pytest.mark.parametrize("fault", PLAYED, ids=by_name)
def test_the_checks_find(fault: Fault, client: redis.Redis, tmp_path: Path) -> None:
    scripts = frozen(tmp_path)
    changed(tmp_path, fault.file, fault.right, fault.wrong)
    with pytest.raises(AssertionError):
        play(make(client, scripts)(), fault)


@pytest.mark.parametrize("fault", PLAYED, ids=by_name)
def test_without_the_fault_nothing_is_wrong(
    fault: Fault, client: redis.Redis, tmp_path: Path
) -> None:
    play(make(client, frozen(tmp_path))(), fault)
