"""Tests of the test: the machine finds each of these faults, planted in the Lua sources."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Machine
from tests.model.sources import changed, frozen

SEARCH = settings(
    max_examples=300,
    stateful_step_count=50,
    derandomize=True,  # each run searches the same way
    database=None,
    deadline=None,
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


FAULTS = [
    Fault(
        "a released job goes to the tail",
        "include/give_back.lua",
        "place_back(base, returned)",
        "for _, job in ipairs(returned) do"
        " redis.call('RPUSH', base .. 'ready:' .. job.level, job.id) end",
    ),
    Fault(
        "a settle in an old term counts",
        "include/queue.lua",
        "if row[1] ~= term then",
        "if false then",
    ),
    Fault(
        "nobody is told of a job that was given back",
        "settle.lua",
        "if back > 0 and not queue.paused then",
        "if false then",
    ),
    Fault(
        "a retry at the tail is no arrival",
        "settle.lua",
        "            back = back + 1\n",
        "",
    ),
    Fault(
        "an arrival wakes all",
        "include/consumers.lua",
        "if covered >= jobs then break end",
        "",
    ),
    Fault(
        "an arrival wakes nobody",
        "enqueue.lua",
        "if not paused and ready > 0 then",
        "if false then",
    ),
    Fault(
        "a job handed over is in nobody's hands",
        "enqueue.lua",
        "  redis.call('RPUSH', base .. 'held:' .. taker.name, stored[1])\n",
        "",
    ),
    Fault(
        "a job handed over goes past one that waits",
        "enqueue.lua",
        "if #names > 0 and levels_waiting(base, row[3]) == 0 then",
        "if #names > 0 then",
    ),
    Fault(
        "lower levels come first",
        "include/levels.lua",
        "return a > b",
        "return a < b",
    ),
    Fault(
        "an id that has ended is accepted again",
        "enqueue.lua",
        "if live[i] or ended[i] or older[i] or seen[id] then",
        "if live[i] or seen[id] then",
    ),
    Fault(
        "an id is accepted again a little too early",
        "include/records.lua",
        "  queue.since = string.format('%.0f', queue.now)\n"
        "  redis.call('HSET', base .. 'meta', 'ended_since', queue.since)",
        "  redis.call('HSET', base .. 'meta', 'ended_since', string.format('%.0f', queue.now))",
    ),
    Fault(
        "a release is charged",
        "include/give_back.lua",
        "if cause then job.attempts = job.attempts + 1 end",
        "job.attempts = job.attempts + 1",
    ),
    Fault(
        "a refused settle has written already",
        "settle.lua",
        "me, failure = queue_consumer(base, consumer, term)",
        "redis.call('HINCRBY', meta, 'settles', 1)\n"
        "me, failure = queue_consumer(base, consumer, term)",
    ),
    Fault(
        "an immediate job that is refused is stored",
        "enqueue.lua",
        "if immediate == '1' and not taker then",
        "redis.call('HSET', base .. 'jobs', ids[1], ARGV[FIRST + 1])\n"
        "if immediate == '1' and not taker then",
    ),
    Fault(
        "one job more than the window is handed out",
        "include/pull.lua",
        "local free = consumer.want - held",
        "local free = consumer.want - held + 1",
    ),
    Fault(
        "bytes are not looked at",
        "include/take.lua",
        "if room and bytes + size > room",
        "if false and bytes + size > room",
    ),
    Fault(
        "bytes of a settle that was refused are freed",
        "settle.lua",
        "if me.bytes > 0 and #stale > 0 then",
        "if false then",
    ),
    Fault(
        "a consumer that waits for bytes is forgotten",
        "include/short.lua",
        "  local waiting = redis.call('HMGET', base .. 'short', unpack(ids))",
        "  local waiting = {}",
    ),
    Fault(
        "a paused queue hands out",
        "include/pull.lua",
        "  if queue.paused then\n    pull_settle_state",
        "  if false then\n    pull_settle_state",
    ),
    Fault(
        "work is not passed on",
        "include/pull.lua",
        "  if queue.paused or queue.quiet then return end\n  if redis",
        "  if true then return end\n  if redis",
    ),
    Fault(
        "a job that is due earlier tells nobody",
        "include/schedule.lua",
        "tonumber(first[2]) < soonest",
        "tonumber(first[2]) <= soonest",
    ),
    Fault(
        "after a pause nobody watches the schedule",
        "resume.lua",
        "\nconsumer_pass_timer(base, queue.now)\n",
        "\n",
    ),
    Fault(
        "due jobs come in reverse",
        "include/promote.lua",
        "redis.call('RPUSH', base .. 'due:'",
        "redis.call('LPUSH', base .. 'due:'",
    ),
    Fault(
        "a lease that ended is revived",
        "renew.lua",
        "if until_ and tonumber(until_) >= queue.now then",
        "if until_ then",
    ),
    Fault(
        "a consumer that does not answer keeps its wake-up",
        "include/upkeep.lua",
        "  upkeep_notified(base, queue)\n",
        "",
    ),
    Fault(
        "a lease that ends charges every job",
        "include/upkeep.lua",
        "0, (tonumber(row[1]) or 1) - 1)",
        "0, -1)",
    ),
    Fault(
        "a cancelled job stays in the hands it was in",
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
        "nobody is told of a dead letter that lives again",
        "requeue.lua",
        "if not queue.paused then consumer_notify",
        "if false then consumer_notify",
    ),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "_"))
def test_the_machine_finds(fault: Fault, client: redis.Redis, tmp_path: Path) -> None:
    scripts = frozen(tmp_path)
    changed(tmp_path, fault.file, fault.right, fault.wrong)
    machine = type("Machine", (Machine,), {"client": client, "lua": scripts})
    with pytest.raises((AssertionError, redis.ResponseError)):
        run_state_machine_as_test(machine, settings=SEARCH)
