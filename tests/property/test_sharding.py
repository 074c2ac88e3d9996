"""Shards come and go at random, beside a model of the order of each key; and faults, planted, are
found."""

from pathlib import Path

import pytest
import redis

from rqueue.errors import RQueueError
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from tests.property.planted import Fault, each
from tests.property.sharding import Course
from tests.property.sources import changed, frozen

KINDS = (Kind.of(["shard"]), Kind.of(["shard", "groups"]))
SEEDS, STEPS = 6, 250
FIRST = {
    "a group that waits to be tried again is not waited for": 11,
    "one fence less is enough": 3,
    "a change is made though another one was faster": 4,
}
"""Where the search for a rare fault begins: courses that show it."""


def search(client: redis.Redis, lua: Scripts, first: int = 0) -> None:
    """Courses of both kinds."""
    for seed in range(first, first + SEEDS):
        for kind in KINDS:
            course = Course(client, lua, seed, kind)
            for _ in range(STEPS):
                course.step()
            course.end()


def test_the_order_of_each_key_holds(client: redis.Redis, tmp_path: Path) -> None:
    search(client, frozen(tmp_path))


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
def test_a_fault_is_found(fault: Fault, client: redis.Redis, tmp_path: Path) -> None:
    frozen(tmp_path)
    changed(tmp_path, fault.file, fault.right, fault.wrong)
    with pytest.raises((AssertionError, RQueueError)):
        search(client, Scripts(tmp_path / "lua"), FIRST.get(fault.name, 0))
