"""Shards come and go at random, beside a model of the order of each key; and faults, planted, are
found."""

import pytest
import redis

from rqueue.errors import RQueueError
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.commands.shards import find_known, of_version, set_shards
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from tests.property.planted import Fault, each
from tests.property.sharding import KEYS, Course
from tests.property.sources import sound
from tests.support.profiles import examples

KINDS = (Kind.of(["shard"]), Kind.of(["shard", "groups"]))
SEEDS, STEPS = examples(1, 6), 250
TO_FIND = 6
"""Courses of each kind in which each planted fault is found."""
FIRST = {
    "what is held is not waited for": 12,
    "a group that waits to be tried again is not waited for": 12,
    "a change is made though another one was faster": 1,
}
"""Where the search for a rare fault begins: courses that show it."""


def search(client: redis.Redis, lua: Scripts, seeds: range) -> None:
    """Courses of both kinds."""
    for seed in seeds:
        for kind in KINDS:
            course = Course(client, lua, seed, kind)
            for _ in range(STEPS):
                course.step()
            course.end()


def test_the_order_of_each_key_holds(client: redis.Redis) -> None:
    search(client, sound(), range(SEEDS))


FAULTS = [
    Fault(
        "a shard takes jobs by an older table",
        "policies/shard.lua",
        "version ~= row[1]",
        "tonumber(version) > tonumber(row[1] or '0')",
    ),
    Fault(
        "a shard takes jobs by a table that it was not informed of",
        "policies/shard.lua",
        "version ~= row[1]",
        "tonumber(version) < tonumber(row[1] or '0')",
    ),
    Fault(
        "what is held is not waited for",
        "include/fence/older.lua",
        "redis.call('LRANGE', base .. 'held:' .. name, '0', '-1')",
        "{}",
    ),
    Fault(
        "what is ready is not waited for",
        "include/fence/older.lua",
        "found = found or fence_older_in_list(base, base .. 'ready:' .. level, position)",
        "found = false",
    ),
    Fault(
        "a group that waits to be tried again is not waited for",
        "include/fence/older.lua",
        "found = fence_older_scheduled(base, position)",
        "found = false",
    ),
    Fault(
        "a shard that opens does not wait",
        "policies/shard/informed.lua",
        "'paused', '1', 'fences', sources",
        "'fences', sources",
    ),
    Fault(
        "one fence less is enough",
        "policies/shard/lifted.lua",
        "if left[1] then",
        "if left[2] then",
    ),
    Fault(
        "a fence is given up when it was informed of",
        "policies/shard/informed.lua",
        "if fence and not fence_older(base, fence) then",
        "if fence then",
    ),
    Fault(
        "the last fence leaves the shard paused",
        "policies/shard/lifted.lua",
        "return not row[3]",
        "return false",
    ),
    Fault(
        "a change is made though another one was faster",
        "policies/sharded/tabled.lua",
        "if version ~= before then return { version, 0 } end",
        "",
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    with pytest.raises((AssertionError, RQueueError)):
        first = FIRST.get(fault.name, 0)
        search(client, sound().changed(fault.piece), range(first, first + TO_FIND))


def ids_over_a_move(client: redis.Redis, lua: Scripts) -> None:
    """A job lives on in the shard that its key has left, long after what else was there is gone: a
    client that has its id learns of it for as long as it lives, and asks nobody afterwards."""
    course = Course(client, lua, 0, KINDS[0])
    before = course.table
    opened = Shard(3)
    fields = {"3": opened.text, "version": "2", "moving": "open 3"}
    fields["past"] = before.past_with([opened])
    after = ShardTable.of("spread", {**{str(n): Shard(n).text for n in range(3)}, **fields})
    key = next(name for name in map(str, range(99)) if after.shard_of(name).number == 3)
    old = before.shard_of(key)
    assert after.earlier(key) == [old]
    put = Put("late", b"[]", delay_ms=3_600_000)
    call = of_version(commands.enqueue(course.at(old.number), [put]), before.version)
    assert course.run(call).accepted == 1
    assert course.run(set_shards(KEYS, before.version, fields))
    look = find_known(course.at(old.number), ["late", "never"])
    # it may take a job still from a client that has not heard
    assert course.run(look).version < after.version
    for _ in range(8):
        course.pass_time()
        table = course.advance()
        assert not table.moving and table.earlier(key) == [old]
        assert course.run(look) == (after.version, {0})
    course.run(commands.cancel(course.at(old.number), "late"))
    course.pull()
    for _ in range(4):
        course.pass_time()
        table = course.advance()
    assert not table.past


def test_an_id_is_known_where_its_key_was(client: redis.Redis) -> None:
    ids_over_a_move(client, sound())


FORGETFUL = [
    Fault(
        "what a shard knows is not noted when keys leave it",
        "policies/shard/informed.lua",
        "then fence_ids_mark(base) end",
        "then local _ = nil end",
    ),
    Fault(
        "what a shard knows is forgotten while its jobs live",
        "include/fence/ids.lua",
        "if position and not fence_ids_live(base, position) then",
        "if true then",
    ),
    Fault(
        "a shard that was not informed says what it does not know",
        "find_known.lua",
        "return { queue.now, version or 0, found }",
        "return { queue.now, 999, found }",
    ),
    Fault(
        "of live jobs it is not said that they are known",
        "find_known.lua",
        "{ 'jobs', 'ended', 'ended:old' }",
        "{ 'ended', 'ended:old' }",
    ),
    Fault(
        "a delayed job is not looked for",
        "include/fence/ids.lua",
        "if (tonumber(string.sub(member, 3, MEMBER_PREFIX)) or 0) <= position then return true end",
        "local _ = member",
    ),
]


@each(FORGETFUL)
def test_what_is_forgotten_is_found(fault: Fault, client: redis.Redis) -> None:
    with pytest.raises((AssertionError, RQueueError)):
        ids_over_a_move(client, sound().changed(fault.piece))
